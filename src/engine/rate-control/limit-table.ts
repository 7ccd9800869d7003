

/** How fast one operator may be asked by one egress, to start with. */
export type RateLimits = {
  /** Connections at the same time. */
  readonly sessionsMax: number
  /** Recipients in one connection, before a new one is opened. */
  readonly recipientsPerSession: number
  /** Recipients in one MAIL transaction. */
  readonly recipientsPerTransaction: number
  /** New connections a second. */
  readonly sessionsPerSecond: number
  /** Unknown users in a row after which we leave, so as not to look like a dictionary attack. */
  readonly unknownStreakMax: number
}


/** A number here goes before the row of the table. */
export type RateLimitOverrides = {
  readonly sessionsPerOperator: number | null
  readonly recipientsPerSession: number | null
  readonly sessionsPerSecond: number | null
}

/**
 * Where each operator's pace starts. Senders of good name use more (KumoMTA's published shaping rules);
 * asking without sending costs reputation, so we start lower and let answers raise or lower it.
 */
const DEFAULT: RateLimits = {
  sessionsMax: 2,
  recipientsPerSession: 20,
  recipientsPerTransaction: 20,
  sessionsPerSecond: 1,
  unknownStreakMax: 20,
}

/** Hosts that count unknown recipients against us: few, and away after three in a row. */
const WARY: Partial<RateLimits> = { sessionsMax: 1, recipientsPerSession: 5, unknownStreakMax: 3 }

const ROWS: Readonly<Record<string, Partial<RateLimits>>> = {
  google: { sessionsMax: 5, recipientsPerSession: 50, recipientsPerTransaction: 50 },
  // AS780090: a second recipient in a transaction is refused, or belongs to "multiple regions".
  outlook: { recipientsPerTransaction: 1 },
  'microsoft-365': { recipientsPerTransaction: 1 },
  yahoo: { sessionsMax: 1 },
  'yahoo-japan': { sessionsMax: 1, recipientsPerSession: 5 },
  icloud: { recipientsPerSession: 5 },
  barracuda: { recipientsPerSession: 10 },
  gmx: { sessionsMax: 1, recipientsPerSession: 10 },
  orange: { sessionsMax: 1, recipientsPerSession: 10 },
  tencent: { sessionsMax: 1, recipientsPerSession: 5 },
  netease: { sessionsMax: 1, recipientsPerSession: 5 },
  kpn: { sessionsMax: 1, recipientsPerSession: 5 },
  netvigator: { sessionsMax: 1, recipientsPerSession: 5 },
  godaddy: WARY,
  titan: WARY,
  mxroute: WARY,
}

/** The start values of an operator: what is said of it alone goes before what is said of all, and that before the table. */
export function limitsFor(
  operator: string,
  all: RateLimitOverrides,
  own?: RateLimitOverrides,
): RateLimits {
  const row = { ...DEFAULT, ...ROWS[operator] }
  const said = <K extends keyof RateLimitOverrides>(key: K) => own?.[key] ?? all[key]
  const recipientsPerSession = said('recipientsPerSession') ?? row.recipientsPerSession
  return {
    ...row,
    sessionsMax: said('sessionsPerOperator') ?? row.sessionsMax,
    recipientsPerSession,
    // One recipient a transaction is a rule of the operator's own; elsewhere a session is one transaction.
    recipientsPerTransaction:
      row.recipientsPerTransaction === 1
        ? 1
        : Math.min(recipientsPerSession, RECIPIENTS_PER_TRANSACTION_MAX),
    sessionsPerSecond: said('sessionsPerSecond') ?? row.sessionsPerSecond,
  }
}

/** RFC 5321 §4.5.3.1.8: every server must take at least 100 recipients in one transaction. */
const RECIPIENTS_PER_TRANSACTION_MAX = 100
