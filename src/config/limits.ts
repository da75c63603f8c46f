/** Limits of configuration files, each with its reason (see src/base/limits.ts). */
export const configLimits = {
  /** Deepest nesting in a config file. The schema is five levels deep; anything deeper only loads the parser's stack. */
  configDepth: 16,
  /** Most problems reported for one config file. Operators do not read more lines than this. */
  configProblems: 50,
} as const;
