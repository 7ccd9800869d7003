/**
 * The tables by name. Each module declares its own in its `tables.ts`, with portable types only: text,
 * integers, epoch ms, flags as 0/1, JSON in text.
 */
// biome-ignore lint/suspicious/noEmptyInterface: the modules add to it.
export interface Schema {}

/** All tables. */
export const TABLES = [
  ...(['job', 'item', 'answer', 'account', 'api_key', 'key_secret', 'session', 'credit'] as const),
  ...(['usage', 'verification', 'event', 'webhook', 'delivery', 'attempt', 'notice'] as const),
  ...(['replay', 'member', 'hold', 'pace', 'catch_all', 'bucket', 'setting'] as const),
] as const satisfies readonly (keyof Schema)[]
