/**
 * The tables by name. Each module declares its tables in its `tables.ts`, with portable types only:
 * text, integers, epoch ms, flags as 0/1, JSON as text.
 */
// biome-ignore lint/suspicious/noEmptyInterface: modules augment it.
export interface Schema {}

/** Names of all tables. */
export const TABLES = [
  ...([
    'job',
    'item',
    'answer',
    'schedule',
    'account',
    'api_key',
    'key_secret',
    'person',
    'recovery_code',
    'session',
    'credit',
  ] as const),
  ...(['usage', 'verification', 'event', 'webhook', 'delivery', 'attempt', 'notice'] as const),
  ...([
    'replay',
    'member',
    'hold',
    'pace',
    'catch_all',
    'learned_reply',
    'witness',
    'bucket',
    'setting',
    'audit',
  ] as const),
  ...(['feedback', 'feedback_account', 'feedback_address', 'feedback_count'] as const),
  ...(['feedback_domain', 'feedback_day', 'feedback_source', 'feedback_reply'] as const),
] as const satisfies readonly (keyof Schema)[]
