"""One machine an exemplar, all against the same negatives."""
