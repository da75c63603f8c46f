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

/** Most workers. Clusters that need more proxies than this are served by several machines. */
export const mostWorkers = 64;
