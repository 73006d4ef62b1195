# Dependencies: filled by the set-up step below.
