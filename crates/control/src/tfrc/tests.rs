//! TFRC through a flow: who measures, what is data-limited, idle or capped, and pacing.
