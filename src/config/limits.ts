/** Limits of configuration files, each with its reason (see src/base/limits.ts). */
export const configLimits = {
  /** Deepest nesting in a config file. The schema has five levels; more would only use the parser's stack. */
  configDepth: 16,
  /** Number of problems reported for one config file. Operators do not read more. */
  configProblems: 50,
} as const;
