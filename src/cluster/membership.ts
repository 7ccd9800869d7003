import type { Database } from '../db/database.ts'
import { type Clock, MINUTE, SECOND, sleep } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import type { Log } from '../platform/log.ts'
import { type Loop, startLoop } from '../platform/loop.ts'
import type { Random } from '../platform/random.ts'
import {
  deregister,
  expireMembers,
  fixFutureHeartbeats,
  heartbeat,
  liveMembers,
  type NewMember,
  type ReleaseClaims,
  register,
} from './members.ts'

/** What members claim: items and credits. */
export type MemberClaims = {
  readonly release: ReleaseClaims
  /** Releases claims of members that no longer exist. Returns their IDs. */
  readonly releaseOrphaned: (database: Database) => Promise<string[]>
}

export type MembershipDeps = Omit<NewMember, 'id'> & {
  readonly database: Database
  readonly claims: MemberClaims
  readonly random: Random
  readonly log: Log
  readonly timings?: ClusterTimings
}

/** This process as one of those that share a database. */
export interface Membership {
  /** Under which it claims items and holds credits; another after it was buried. */
  readonly id: string
  /** Calls once whenever the process finds itself buried: others have what it had in hand. Gives the function that ends that. */
  onLost(call: () => void): () => void
  /** The same whenever it was not heard of for so long that it may soon be buried, as when it is cut off. */
  onSilent(call: () => void): () => void
  /** Names of the egresses that some member asks by, in alphabetical order, as at the last look. */
  egresses(): readonly string[]
  /**
   * Leaves: what it had in hand others may take at once, and nothing that was claimed under its ID is written any more.
   * May be called twice.
   */
  stop(): Promise<void>
}

/** Joins; resolves when this process may claim items. */
export async function startMembership(deps: MembershipDeps): Promise<Membership> {
  const member = new LivingMember(deps)
  await member.join()
  return member.live()
}

/** 103 bits of chance, as IDs of events have. */
const ID_LENGTH = 20

class LivingMember {
  readonly #deps: MembershipDeps
  readonly #clock: Clock
  readonly #timings: ClusterTimings
  readonly #stopping = new AbortController()
  readonly #listeners = { lost: new Set<() => void>(), silent: new Set<() => void>() }
  #id = ''
  /** It has not joined yet, or was buried and has not joined anew. */
  #isLost = true
  /** When it was last heard of, and since when without a gap; both by the database's clock. */
  #heardAt = 0
  #since = 0
  /** When the last beat that came in went out, in ticks; the alarm is put off with each. */
  #startedAt = Number.NEGATIVE_INFINITY
  #cancelAlarm: (() => void) | null = null
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
    // It was tried again meanwhile, and succeeded; or nobody wants to join any more.
    if (!this.#isLost || this.#stopping.signal.aborted)
      return deregister(database, id, this.#deps.claims.release)
    this.#id = id
    this.#isLost = false
    this.#heardAt = at
    this.#since = at
    this.#setAlarm(startedAt)
  }

  live(): Membership {
    const loops = [
      this.#start('membership: heartbeat', this.#timings.beatMs, () => this.#beat()),
      this.#start('membership: check of the others', this.#timings.pollMs, () => this.#look()),
    ]
    const id = () => this.#id
    let stopped: Promise<void> | null = null
    return {
      get id() {
        return id()
      },
      onLost: call => listen(this.#listeners.lost, call),
      onSilent: call => listen(this.#listeners.silent, call),
      egresses: () => this.#egresses,
      stop: () => {
        stopped ??= this.#stop(loops)
        return stopped
      },
    }
  }

  async #beat(): Promise<void> {
    if (this.#isLost) return this.join()
    const id = this.#id
    const startedAt = this.#clock.monotonicNow()
    const at = await heartbeat(this.#deps.database, id)
    // One that was sent before may be answered later.
    if (id !== this.#id || this.#isLost || this.#stopping.signal.aborted) return
    if (at === null) return this.#lose()
    if (at < this.#heardAt || at - this.#heardAt > this.#timings.touchMs) this.#since = at
    this.#heardAt = at
    this.#setAlarm(startedAt)
  }

  /** The others count from when the beat came in, which was later than when it went out. */
  #setAlarm(startedAt: number) {
    if (startedAt < this.#startedAt) return
    this.#startedAt = startedAt
    this.#cancelAlarm?.()
    const leftMs = startedAt + this.#timings.silentMs - this.#clock.monotonicNow()
    this.#cancelAlarm = this.#clock.after(leftMs, () => notify(this.#listeners.silent))
  }

  #lose(): Promise<void> {
    this.#isLost = true
    this.#deps.log.warn('taken for dead by others: what was under way ends', { member: this.#id })
    notify(this.#listeners.lost)
    return this.join()
  }

  async #look(): Promise<void> {
    const { database, log, egresses } = this.#deps
    const { deadMs, touchMs } = this.#timings
    const members = await liveMembers(database)
    const names = new Set([...egresses, ...members.flatMap(member => member.egresses)])
    this.#egresses = [...names].sort()
    if (members.some(({ quietMs }) => quietMs < 0)) await fixFutureHeartbeats(database)
    if (members.some(({ quietMs }) => quietMs > deadMs)) {
      const own = { by: this.#id, since: this.#since, heardAt: this.#heardAt }
      const o = { ...own, deadMs, freshMs: touchMs }
      for (const member of await expireMembers(database, o, this.#deps.claims.release))
        log.warn('a member is dead', { member })
    }
    await this.#deps.claims.releaseOrphaned(database)
  }

  #start(name: string, everyMs: number, run: () => Promise<void>): Loop {
    const { retryMs } = this.#timings
    return startLoop({
      ...{ name, everyMs, clock: this.#clock, log: this.#deps.log },
      // An outage must cost no member its life, so the wait does not grow.
      ...{ retryMs, retryMaxMs: retryMs },
      ...{ signal: this.#stopping.signal, run: () => this.#inTime(run()) },
    })
  }

  /** Rejects what takes too long, so that it is retried beside it: its connection may be dead. */
  async #inTime(done: Promise<void>): Promise<void> {
    const { timeoutMs } = this.#timings
    const either = new AbortController()
    const signal = AbortSignal.any([either.signal, this.#stopping.signal])
    const late = sleep(this.#clock, timeoutMs, signal).then(() => {
      throw new Error(`it takes longer than ${timeoutMs} ms`)
    })
    try {
      await Promise.race([done, late])
    } finally {
      either.abort()
    }
  }

  async #stop(loops: readonly Loop[]): Promise<void> {
    this.#stopping.abort()
    await Promise.all(loops.map(loop => loop.stop()))
    this.#cancelAlarm?.()
    // Where that fails the others find out by themselves.
    await deregister(this.#deps.database, this.#id, this.#deps.claims.release).catch(error =>
      this.#deps.log.error('membership: leaving failed', { why: errorMessage(error) }),
    )
  }
}

type Listeners = Set<() => void>

function listen(listeners: Listeners, call: () => void): () => void {
  listeners.add(call)
  return () => void listeners.delete(call)
}

function notify(listeners: Listeners) {
  for (const call of [...listeners]) call()
}

/** Intervals by which the members of a cluster know of one another, in ms. */
export type ClusterTimings = {
  /** How often a member writes that it is alive. */
  readonly beatMs: number
  /** A member that was silent for so long is dead. */
  readonly deadMs: number
  /** A member that was silent for so long has ended its work: others may soon begin with it. */
  readonly silentMs: number
  /** How often each member looks for the others. */
  readonly pollMs: number
  /** A beat or look that takes longer is tried again beside it: its connection may be dead. */
  readonly timeoutMs: number
  /** Wait after a beat or look that failed; short, so that an outage costs no member its life. */
  readonly retryMs: number
  /**
   * A member that was itself heard of less often than this cannot tell who is dead: the database
   * may have been away for all.
   */
  readonly touchMs: number
  /** Each member looks for missing entries after this time and a random part of the spread. */
  readonly reconcileMinMs: number
  readonly reconcileSpreadMs: number
  /** What is due for longer should have been taken: its entry is missing. */
  readonly overdueMs: number
  /** Items of an egress that no member has had for so long go to any other. */
  readonly absentMs: number
}

export const DEFAULT_CLUSTER_TIMINGS: ClusterTimings = {
  beatMs: 3 * SECOND,
  deadMs: 10 * SECOND,
  silentMs: 9.5 * SECOND,
  pollMs: 2 * SECOND,
  timeoutMs: 2 * SECOND,
  retryMs: SECOND / 2,
  touchMs: 5 * SECOND,
  reconcileMinMs: 10 * SECOND,
  reconcileSpreadMs: 5 * SECOND,
  overdueMs: 10 * SECOND,
  absentMs: 5 * MINUTE,
}

/**
 * Throws where the intervals contradict one another: a member that beats as it should must not
 * count as silent, must end its work before others take it for dead, and must be able to tell who
 * is dead (a gap of `touchMs` and one more beat is still less than `deadMs`).
 */
export function checkClusterTimings(timings: ClusterTimings): void {
  const { beatMs, touchMs, silentMs, deadMs } = timings
  if (beatMs >= touchMs) throw new RangeError('beatMs must be less than touchMs')
  if (touchMs + beatMs >= deadMs) throw new RangeError('touchMs + beatMs must be less than deadMs')
  if (silentMs >= deadMs) throw new RangeError('silentMs must be less than deadMs')
  if (beatMs >= silentMs) throw new RangeError('beatMs must be less than silentMs')
}
