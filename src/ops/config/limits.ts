/** Limits of configuration files, each with its reason (see src/base/limits.ts). */
export const configLimits = {
  /**
   * Maximum nesting depth in a config file. The schema has six levels; further levels would only fill the parser's
   * stack.
   */
  configDepth: 16,
  /** Maximum number of problems reported for one config file. Operators do not read more. */
  configProblems: 50,
} as const;

/** Maximum number of workers: processes that serve clients. Clusters that need more are served by several machines. */
export const mostWorkers = 64;
