/** Limits of configuration files, each with its reason (see src/base/limits.ts). */
export const configLimits = {
  /** Deepest nesting in a config file. The schema is five levels deep; deeper files only cost the parser's stack. */
  configDepth: 16,
  /** Number of problems reported for one config file: operators do not read more. */
  configProblems: 50,
} as const;
