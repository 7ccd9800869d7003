/** The initial rate limits for one operator and one egress. */
export type RateLimits = {
  /** Concurrent connections. */
  readonly sessionsMax: number
  /** Recipients per connection, before a new one is opened. */
  readonly recipientsPerSession: number
  /** Recipients per MAIL transaction. */
  readonly recipientsPerTransaction: number
  /** New connections per second. */
  readonly sessionsPerSecond: number
  /** Consecutive unknown users after which we pause, so as not to look like a dictionary attack. */
  readonly unknownStreakMax: number
}

/** Overrides for the table; null keeps its value. */
export type RateLimitOverrides = {
  readonly sessionsPerOperator: number | null
  readonly recipientsPerSession: number | null
  readonly sessionsPerSecond: number | null
}

/** The limits of an IP address or a network, over all operators and egresses. */
export type DestinationLimit = Pick<RateLimits, 'sessionsMax' | 'sessionsPerSecond'>

/** Settings for IP addresses and networks; null keeps the default. */
type DestinationOverrides = {
  readonly sessionsPerAddress: number | null
  readonly sessionsPerSecondPerAddress: number | null
  readonly sessionsPerNetwork: number | null
  readonly sessionsPerSecondPerNetwork: number | null
}

/**
 * A network may hold 254 independent servers, or belong to one hoster with an address per customer.
 * One Postfix with its 100 processes (default_process_limit) serves 100 sessions of one second each.
 */
const NETWORK_FACTOR = 100

/**
 * The default limits. Senders with a good reputation use higher ones (KumoMTA's published shaping
 * rules); probing without sending costs reputation, so these start lower and adapt to the replies.
 */
const DEFAULT: RateLimits = {
  sessionsMax: 2,
  recipientsPerSession: 20,
  recipientsPerTransaction: 20,
  sessionsPerSecond: 1,
  unknownStreakMax: 20,
}

/**
 * For hosts that penalize unknown recipients: few per session, and a pause after three in a row.
 */
const STRICT: Partial<RateLimits> = { sessionsMax: 1, recipientsPerSession: 5, unknownStreakMax: 3 }

const ROWS: ReadonlyMap<string, Partial<RateLimits>> = new Map(
  Object.entries<Partial<RateLimits>>({
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
    godaddy: STRICT,
    titan: STRICT,
    mxroute: STRICT,
  }),
)

/**
 * Returns the initial limits of an operator: its own overrides first, then the global ones, then
 * the table.
 */
export function limitsFor(
  operator: string,
  globalOverrides: RateLimitOverrides,
  operatorOverrides?: RateLimitOverrides,
): RateLimits {
  const limits = { ...DEFAULT, ...ROWS.get(operator) }
  const override = <K extends keyof RateLimitOverrides>(key: K) =>
    operatorOverrides?.[key] ?? globalOverrides[key]
  const recipientsPerSession = override('recipientsPerSession') ?? limits.recipientsPerSession
  return {
    ...limits,
    sessionsMax: override('sessionsPerOperator') ?? limits.sessionsMax,
    recipientsPerSession,
    // One recipient per transaction is the operator's rule; otherwise a session is one transaction.
    recipientsPerTransaction:
      limits.recipientsPerTransaction === 1
        ? 1
        : Math.min(recipientsPerSession, RECIPIENTS_PER_TRANSACTION_MAX),
    sessionsPerSecond: override('sessionsPerSecond') ?? limits.sessionsPerSecond,
  }
}

/**
 * Returns the limits of each IP address and of each network. An address has by default the limits of
 * an operator outside the table, because it may be one small server that has many names; a network
 * has `NETWORK_FACTOR` times those of an address.
 */
export function destinationLimitsFor(globalOverrides: RateLimitOverrides & DestinationOverrides): {
  readonly address: DestinationLimit
  readonly network: DestinationLimit
} {
  const operator = limitsFor('', globalOverrides)
  const address = {
    sessionsMax: globalOverrides.sessionsPerAddress ?? operator.sessionsMax,
    sessionsPerSecond: globalOverrides.sessionsPerSecondPerAddress ?? operator.sessionsPerSecond,
  }
  const network = {
    sessionsMax: globalOverrides.sessionsPerNetwork ?? address.sessionsMax * NETWORK_FACTOR,
    sessionsPerSecond:
      globalOverrides.sessionsPerSecondPerNetwork ?? address.sessionsPerSecond * NETWORK_FACTOR,
  }
  return { address, network }
}

/**
 * Returns a function for the initial limits of any operator. Operators without limits of their own,
 * which are most of a long list, share one object.
 */
export function createLimits(
  globalOverrides: RateLimitOverrides,
  overridesFor: (operator: string) => RateLimitOverrides | undefined,
): (operator: string) => RateLimits {
  const common = limitsFor('', globalOverrides)
  return operator => {
    const overrides = overridesFor(operator)
    const isCommon = overrides === undefined && !ROWS.has(operator)
    return isCommon ? common : limitsFor(operator, globalOverrides, overrides)
  }
}

/** RFC 5321 §4.5.3.1.8: every server must accept at least 100 recipients per transaction. */
const RECIPIENTS_PER_TRANSACTION_MAX = 100
