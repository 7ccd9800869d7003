import type { Database } from '../db/database.ts'
import { type Clock, MINUTE, SECOND, withTimeout } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { type Log, type LogEvent, writeLog } from '../platform/log.ts'
import { type Loop, startLoop } from '../platform/loop.ts'
import type { Random } from '../platform/random.ts'
import {
  deregister,
  expireMembers,
  fixFutureHeartbeats,
  heartbeat,
  listMembers,
  type Member,
  type NewMember,
  type ReleaseClaims,
  register,
} from './members.ts'
import { CLUSTER_LOG } from './telemetry.ts'

// The states of a member:
//
// | state            | event                                                       | next state             |
// | ---------------- | ----------------------------------------------------------- | ---------------------- |
// |                  | it registers                                                | active                 |
// | active           | its heartbeats fail for `silentMs`                          | silent: stops its work |
// | silent           | a heartbeat is confirmed                                    | active                 |
// | active, silent   | another member finds no heartbeat of the last `expiryMs`    | expired                |
// | active, silent   | it stops                                                    | removed                |
// | expired          | its next heartbeat finds no row: it registers with a new ID | active                 |
//
// What a member has claimed is released in the transaction that removes its row.

/** The claims of members: items and credits. */
export type MemberClaims = {
  readonly release: ReleaseClaims
  /** Releases claims of members that no longer exist. Returns their IDs. */
  readonly releaseOrphaned: (database: Database) => Promise<string[]>
}

type MembershipDeps = Omit<NewMember, 'id'> & {
  readonly database: Database
  readonly claims: MemberClaims
  readonly random: Random
  readonly log: Log
  readonly timings?: ClusterTimings
}

/** The membership of this process in the cluster. */
export interface Membership {
  /** ID under which it claims items and reserves credits; a new one after an expiry. */
  readonly id: string
  /**
   * Calls `listener` each time this member was expired: others have its claims then. Returns the
   * function that unsubscribes.
   */
  onLost(listener: () => void): () => void
  /**
   * Calls `listener` each time the heartbeats have failed for so long that this member will soon be
   * expired, as in a network partition. Returns the function that unsubscribes.
   */
  onSilent(listener: () => void): () => void
  /** Names of the egresses of all members, sorted, as of the last poll. */
  egresses(): readonly string[]
  /**
   * Deregisters: its claims are free at once, and nothing claimed under its ID is written any more.
   * Idempotent.
   */
  stop(): Promise<void>
}

/** Registers this process; resolves once it may claim items. */
export async function startMembership(deps: MembershipDeps): Promise<Membership> {
  const member = new LocalMember(deps)
  await member.join()
  return member.live()
}

/** Returns the members with a recent heartbeat. */
export async function activeMembers(database: Database): Promise<Member[]> {
  const members = await listMembers(database)
  return members.filter(({ quietMs }) => quietMs < DEFAULT_CLUSTER_TIMINGS.expiryMs)
}

/** 103 bits of entropy, as event IDs have. */
const ID_LENGTH = 20

class LocalMember {
  readonly #deps: MembershipDeps
  readonly #clock: Clock
  readonly #timings: ClusterTimings
  readonly #stopping = new AbortController()
  readonly #listeners = { lost: new Set<() => void>(), silent: new Set<() => void>() }
  #id = ''
  /** It is not registered yet, or was expired and has not registered again. */
  #isLost = true
  /**
   * Time of the last heartbeat, and the start of the series without a gap; both by the database's
   * clock.
   */
  #lastBeatAt = 0
  #since = 0
  /** Monotonic time when the last confirmed heartbeat was sent; each one postpones the alarm. */
  #startedAt = Number.NEGATIVE_INFINITY
  #cancelAlarm: (() => void) | null = null
  #orphansReleasedAt = Number.NEGATIVE_INFINITY
  #egresses: readonly string[]

  constructor(deps: MembershipDeps) {
    this.#deps = deps
    this.#clock = deps.database.clock
    this.#timings = deps.timings ?? DEFAULT_CLUSTER_TIMINGS
    checkClusterTimings(this.#timings)
    this.#egresses = deps.egresses.toSorted()
  }

  async join(): Promise<void> {
    const { database, random, role, name, version, egresses } = this.#deps
    const id = `mem_${random.token(ID_LENGTH)}`
    const startedAt = this.#clock.monotonicNow()
    const at = await register(database, { id, role, name, version, egresses })
    // A retry has succeeded in the meantime, or the member is stopping.
    if (!this.#isLost || this.#stopping.signal.aborted)
      return deregister(database, id, this.#deps.claims.release)
    this.#id = id
    this.#isLost = false
    this.#lastBeatAt = at
    this.#since = at
    this.#setAlarm(startedAt)
  }

  live(): Membership {
    const loops = [
      this.#start(CLUSTER_LOG.heartbeatFailed, this.#timings.beatMs, () => this.#sendHeartbeat()),
      this.#start(CLUSTER_LOG.memberCheckFailed, this.#timings.pollMs, () => this.#checkMembers()),
    ]
    const id = () => this.#id
    let stopped: Promise<void> | null = null
    return {
      get id() {
        return id()
      },
      onLost: listener => listen(this.#listeners.lost, listener),
      onSilent: listener => listen(this.#listeners.silent, listener),
      egresses: () => this.#egresses,
      stop: () => {
        stopped ??= this.#stop(loops)
        return stopped
      },
    }
  }

  async #sendHeartbeat(): Promise<void> {
    if (this.#isLost) return this.join()
    const id = this.#id
    const startedAt = this.#clock.monotonicNow()
    const at = await heartbeat(this.#deps.database, id)
    // A response may belong to an earlier heartbeat.
    if (id !== this.#id || this.#isLost || this.#stopping.signal.aborted) return
    if (at === null) return this.#onExpired()
    if (at < this.#lastBeatAt || at - this.#lastBeatAt > this.#timings.touchMs) this.#since = at
    this.#lastBeatAt = at
    this.#setAlarm(startedAt)
  }

  /** Other members count from the arrival of the heartbeat, which is later than its sending. */
  #setAlarm(startedAt: number) {
    if (startedAt < this.#startedAt) return
    this.#startedAt = startedAt
    this.#cancelAlarm?.()
    const leftMs = startedAt + this.#timings.silentMs - this.#clock.monotonicNow()
    this.#cancelAlarm = this.#clock.after(leftMs, () => notify(this.#listeners.silent))
  }

  #onExpired(): Promise<void> {
    this.#isLost = true
    writeLog(this.#deps.log, CLUSTER_LOG.membershipExpired, { member: this.#id })
    notify(this.#listeners.lost)
    return this.join()
  }

  async #checkMembers(): Promise<void> {
    const { database, log, egresses } = this.#deps
    const { expiryMs, touchMs } = this.#timings
    const members = await listMembers(database)
    const names = new Set([...egresses, ...members.flatMap(member => member.egresses)])
    this.#egresses = [...names].sort()
    if (members.some(({ quietMs }) => quietMs < 0)) await fixFutureHeartbeats(database)
    if (members.some(({ quietMs }) => quietMs > expiryMs)) {
      const own = { by: this.#id, since: this.#since, lastBeatAt: this.#lastBeatAt }
      const o = { ...own, expiryMs, freshMs: touchMs }
      for (const member of await expireMembers(database, o, this.#deps.claims.release))
        writeLog(log, CLUSTER_LOG.memberExpired, { member })
    }
    await this.#releaseOrphaned()
  }

  /** A claim is orphaned only if it was committed while its member was removed, which is rare. */
  async #releaseOrphaned(): Promise<void> {
    const now = this.#clock.monotonicNow()
    if (now - this.#orphansReleasedAt < this.#timings.expiryMs) return
    this.#orphansReleasedAt = now
    await this.#deps.claims.releaseOrphaned(this.#deps.database)
  }

  #start(failed: LogEvent, everyMs: number, run: () => Promise<void>): Loop {
    const { retryMs } = this.#timings
    return startLoop({
      failed,
      everyMs,
      clock: this.#clock,
      log: this.#deps.log,
      // The retry delay does not grow, so that a short outage does not expire members.
      retryMs,
      retryMaxMs: retryMs,
      signal: this.#stopping.signal,
      run: () => this.#withTimeout(run()),
    })
  }

  /**
   * Rejects a call that takes too long, so that it is retried in parallel: its connection may be
   * dead.
   */
  #withTimeout(call: Promise<void>): Promise<void> {
    const { timeoutMs } = this.#timings
    return withTimeout(this.#clock, call, {
      timeoutMs,
      signal: this.#stopping.signal,
      message: `no response within ${timeoutMs} ms`,
    })
  }

  async #stop(loops: readonly Loop[]): Promise<void> {
    this.#stopping.abort()
    await Promise.all(loops.map(loop => loop.stop()))
    this.#cancelAlarm?.()
    // If it fails, the member expires.
    await deregister(this.#deps.database, this.#id, this.#deps.claims.release).catch(error =>
      writeLog(this.#deps.log, CLUSTER_LOG.memberNotDeregistered, {
        why: errorMessage(error),
      }),
    )
  }
}

type Listeners = Set<() => void>

function listen(listeners: Listeners, listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

function notify(listeners: Listeners) {
  for (const listener of [...listeners]) listener()
}

/** Intervals of cluster membership, in ms. */
export type ClusterTimings = {
  /** Interval of the heartbeats. */
  readonly beatMs: number
  /** A member whose last heartbeat is older than this has expired. */
  readonly expiryMs: number
  /** Age of its last heartbeat at which a member stops its own work, shortly before it expires. */
  readonly silentMs: number
  /** Interval of the check for expired members. */
  readonly pollMs: number
  /**
   * Timeout of a heartbeat or check, after which it is retried in parallel: its connection may be
   * dead.
   */
  readonly timeoutMs: number
  /** Wait after a failed heartbeat or check; short, so that an outage does not expire members. */
  readonly retryMs: number
  /**
   * A member whose own heartbeats have a gap longer than this expires no others: the database may
   * have been down for all of them.
   */
  readonly touchMs: number
  /**
   * Interval of the search for items bound to an absent egress: this minimum plus a random part of
   * the spread.
   */
  readonly unpinMinMs: number
  readonly unpinSpreadMs: number
  /** Items bound to an egress that are overdue by more than this have probably lost it. */
  readonly overdueMs: number
  /** Items bound to an egress that no member has had for this long may use any other. */
  readonly absentMs: number
}

export const DEFAULT_CLUSTER_TIMINGS: ClusterTimings = {
  beatMs: 3 * SECOND,
  expiryMs: 10 * SECOND,
  silentMs: 9.5 * SECOND,
  pollMs: 2 * SECOND,
  timeoutMs: 2 * SECOND,
  retryMs: SECOND / 2,
  touchMs: 5 * SECOND,
  unpinMinMs: 10 * SECOND,
  unpinSpreadMs: 5 * SECOND,
  overdueMs: 10 * SECOND,
  absentMs: 5 * MINUTE,
}

/**
 * Throws if the intervals contradict each other. A member with regular heartbeats must not count as
 * silent, must stop its work before others expire it, and must be able to judge others: a gap of
 * `touchMs` plus one interval is still less than `expiryMs`.
 */
export function checkClusterTimings(timings: ClusterTimings): void {
  const { beatMs, touchMs, silentMs, expiryMs } = timings
  if (beatMs >= touchMs) throw new RangeError('beatMs must be less than touchMs')
  if (touchMs + beatMs >= expiryMs)
    throw new RangeError('touchMs + beatMs must be less than expiryMs')
  if (silentMs >= expiryMs) throw new RangeError('silentMs must be less than expiryMs')
  if (beatMs >= silentMs) throw new RangeError('beatMs must be less than silentMs')
}
