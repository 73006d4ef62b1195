#!/bin/bash
# boxes.sh RANK SWIZZLE: a source of tests/maps/boxes.cu.in on stdout, for the task boxesRANK.
rank=$1 swizzle=$2 wide=16 box= grid= sizes= loaded= stored=
[ "$swizzle" = 0 ] || wide=$((swizzle / 4))
shapes=(- a 'a 20' 'a 3 20' 'a b 3 20' 'a b 2 3 20')
read -ra size <<<"${shapes[rank]}"
for ((d = 0; d < rank; d++)); do
  step=$((d == rank - 1 ? wide : 2))
  box+=${box:+, }$step
  grid+=${grid:+ * }"ceil_div(${size[d]}, $step)"
  sizes="${size[d]}${sizes:+, }$sizes"
  loaded+=${loaded:+, }%$((4 + d))
  stored+=${stored:+, }%$((2 + d))
done
for ((; d < 5; d++)); do sizes+=', 1'; done
sed "s/@RANK@/$rank/g; s/@SWIZZLE@/$swizzle/g; s/@WIDE@/$wide/; s/@BOX@/$box/; s/@GRID@/$grid/
  s/@SIZES@/$sizes/; s/@LOADED@/$loaded/; s/@STORED@/$stored/" "$(dirname "$0")/boxes.cu.in"
