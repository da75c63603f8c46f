/** A child process that sends one message. */
process.send?.(1);
