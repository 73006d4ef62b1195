#!/usr/bin/perl
# Make a `samples` artifact from lines "TASK<tab>SOURCE", where \n in SOURCE is a line feed. Written
# without the code under test. Usage: make_samples.pl <lines >samples.qa
use strict;
use warnings;
use Digest::SHA qw(sha256_hex);

sub text { my $s = shift; my $n = length $s;
    return ($n < 32 ? chr(0xa0 + $n) : $n < 256 ? pack('CC', 0xd9, $n) : pack('Cn', 0xda, $n)) . $s }
sub int_ { my $n = shift; return $n < 128 ? chr $n : $n < 256 ? pack('CC', 0xcc, $n) : pack('Cn', 0xcd, $n) }
sub map_ { my %m = @_; my $n = keys %m;
    return ($n < 16 ? chr(0x80 + $n) : pack('Cn', 0xde, $n)) .
        join '', map { text($_) . $m{$_} } sort keys %m }

my ($payload, $count) = ('', 0);
while (my $line = <STDIN>) {
    chomp $line;
    my ($task, $source) = split /\t/, $line, 2;
    $source = '' unless defined $source;
    $source =~ s/\\n/\n/g;
    $payload .= map_(id => text("s$count"), task => text($task), split => text('train'),
                         stage => text('test'),
        producer => text('dir:test'), group => text('g'), trial => int_($count), seed => int_(1),
        finish => text('stop'), text => text('an answer'), source => text($source), prompt => text('p'));
    $count++;
}
binmode STDOUT;
print map_(magic => text('quern'), format => int_(1), kind => text('samples'), schema => int_(1),
    producer => text('make_samples'), version => text('0.1.0'), config => map_(), inputs => chr(0x90),
    count => int_($count), digest => text(sha256_hex($payload))), $payload;
