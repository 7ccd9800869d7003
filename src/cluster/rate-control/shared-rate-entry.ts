import type { RateLimits } from '../../engine/rate-control/limit-table.ts'
import {
  isFull,
  mayStart,
  newState,
  onStarted,
  type RateChange,
  type RateState,
  rescale,
} from '../../engine/rate-control/rules.ts'
import type { RateKey } from '../../engine/rate-control/shared-state.ts'
import type { RateWrite } from './rows.ts'
import {
  DEFAULT_RATE_TIMINGS,
  dropNonMembers,
  isCurrent,
  isSingleWaiting,
  newTicket,
  type QueuePosition,
  reservedFor,
  type StoredRate,
  type WaitTicket,
  withMember,
} from './stored-state.ts'

/** A request for a permit to open a connection. */
type PermitRequest = {
  /** A client waits for the answer. */
  readonly single: boolean
  readonly decide: (isGranted: boolean) => void
  readonly fail: (error: unknown) => void
}

/** A write of an entry, and its effects once it succeeds. */
export type PendingWrite = {
  readonly write: RateWrite
  readonly granted: readonly PermitRequest[]
  readonly refused: readonly PermitRequest[]
  /** Number of pending changes it contains. */
  readonly changes: number
}

type KnownState = StoredRate & {
  readonly version: number
  /** Monotonic time when it was read. */
  readonly at: number
}

/**
 * One shared rate state as this process knows it: the stored state and the changes not yet written.
 */
export class SharedRateEntry {
  readonly key: RateKey
  readonly #limits: RateLimits
  readonly #ticketMs: number
  /** Null if it must be read before the next decision. */
  #known: KnownState | null = null
  #state: RateState
  /** Changes not yet stored, in order. */
  #changes: RateChange[] = []
  /** Some changes must be written now, not only with the next write. */
  #needsFlush = false
  /** Connections held by this process, under any member ID. */
  #ownConnections = 0
  #member = ''
  readonly #requests = new Set<PermitRequest>()
  readonly #waiters = new Waiters()
  /** Polls since it was last used. */
  idle = 0

  constructor(key: RateKey, limits: RateLimits, ticketMs = DEFAULT_RATE_TIMINGS.ticketMs) {
    this.key = key
    this.#limits = limits
    this.#ticketMs = ticketMs
    this.#state = newState(limits)
  }

  get state(): RateState {
    return this.#state
  }

  /** Connections of all members, including those requested here. */
  get sessions(): number {
    return this.#others + this.#ownConnections + this.#requests.size
  }

  /** Connections reserved for other members, which come before the requests here. */
  reservedForOthers(single: boolean, now: number): number {
    const position = { since: this.#waiters.since(now), single }
    return this.#known === null ? 0 : reservedFor(this.#known.waiting, this.#member, position, now)
  }

  isSingleWaiting(now: number): boolean {
    return this.#known !== null && isSingleWaiting(this.#known.waiting, this.#member, now)
  }

  get #empty(): StoredRate {
    return { state: newState(this.#limits), held: {}, waiting: {} }
  }

  get #others(): number {
    let others = 0
    const held = this.#known?.held ?? {}
    for (const member in held) if (member !== this.#member) others += held[member] ?? 0
    return others
  }

  /** 0 if it must be read. */
  get version(): number {
    return this.#known?.version ?? 0
  }

  get isKnown(): boolean {
    return this.#known !== null
  }

  /** Whether it has no connections, changes or requests here. */
  get isQuiet(): boolean {
    return (
      this.#ownConnections === 0 &&
      this.#changes.length === 0 &&
      this.#requests.size === 0 &&
      this.#waiters.isEmpty
    )
  }

  /**
   * Whether there is something to decide or write. A process that is not a member gets no permits
   * and holds no connections.
   */
  isDue(isMember: boolean): boolean {
    if (this.#needsFlush) return true
    if (!isMember) return false
    const stored = this.#known?.held[this.#member] ?? 0
    return this.#requests.size > 0 || this.#ownConnections !== stored
  }

  /**
   * Sets the member ID of this process. Open connections move to the new ID, because the permits of
   * the old one are void.
   */
  setMember(member: string): void {
    if (member === this.#member) return
    this.#member = member
    // Changes that were to be written with the end of these connections are written now.
    this.#needsFlush ||= this.#changes.length > 0
  }

  request(request: PermitRequest): void {
    this.#requests.add(request)
  }

  cancel(request: PermitRequest): void {
    this.#requests.delete(request)
  }

  /** Records the end of a connection. */
  end(): void {
    this.#ownConnections--
  }

  change(change: RateChange, now: number, needsFlush: boolean): void {
    const next = change(this.#state, now)
    const isRepeated = next === this.#state && this.#changes.at(-1) === change
    if (!isRepeated) this.#changes.push(change)
    this.#state = next
    this.#needsFlush ||= needsFlush
  }

  watch(call: () => void, single: boolean, now: number): () => void {
    return this.#waiters.add(call, single, now)
  }

  /** Whether a client waits here for an answer. */
  get hasSingle(): boolean {
    return this.#waiters.hasSingle
  }

  /** Schedules a write if the ticket of this member must be created, renewed or withdrawn. */
  renewTicket(now: number): void {
    if (this.#known === null) return
    const position = this.#positionFor([...this.#requests], now)
    if (!isCurrent(this.#known.waiting[this.#member] ?? null, position, now, this.#ticketMs))
      this.#needsFlush = true
  }

  #positionFor(pending: readonly PermitRequest[], now: number): QueuePosition | null {
    const position = this.#waiters.position(pending, now)
    if (position === null) return null
    return isFull(this.#state, this.sessions + this.reservedForOthers(position.single, now))
      ? position
      : null
  }

  /** Applies the stored state; null if there is no row. Permits of non-members are void. */
  read(o: {
    readonly stored: StoredRate | null
    readonly version: number
    readonly members: readonly string[]
    readonly now: number
    readonly at: number
  }): void {
    // A response that was overtaken by a later one.
    if (this.#known !== null && o.version < this.#known.version) return
    const stored = dropNonMembers(o.stored ?? this.#empty, o.members)
    const state = rescale(stored.state, this.#limits, o.now)
    this.#known = { ...stored, state, version: o.version, at: o.at }
    this.#recompute(o.now)
  }

  /** Drops the entries of processes that were not members in a read that started at `at`. */
  dropExpiredMembers(members: readonly string[], at: number, now: number): void {
    // A read that started before may have missed a member that registered since.
    if (this.#known === null || this.#known.at > at) return
    const stored = dropNonMembers(this.#known, members)
    if (stored === this.#known) return
    this.#known = { ...this.#known, ...stored }
    this.#recompute(now)
  }

  /**
   * Discards the known state after a write with an unknown result: it is read again and corrected.
   */
  invalidate(): void {
    this.#known = null
    this.#needsFlush = true
  }

  /**
   * Returns the write that is due; null if there is none. While this process is not a member, no
   * request is granted or rejected.
   */
  plan(now: number, isMember: boolean): PendingWrite | null {
    this.#needsFlush = false
    const known = this.#known as KnownState
    const changes = this.#changes.length
    const changed = this.#changes.reduce((state, change) => change(state, now), known.state)
    const { state, granted, refused } = this.#admit(changed, now, isMember)
    const held = isMember ? this.#ownConnections + granted.length : 0
    const ticket = isMember ? this.#ticket(granted.length > 0, refused, now) : null
    const current = known.waiting[this.#member] ?? null
    const isUnchanged = ticket === current && held === (known.held[this.#member] ?? 0)
    if (isUnchanged && state === known.state) {
      this.#resolveRequests({ granted, refused, changes })
      return null
    }
    const stored = withMember(known, this.#member, { state, held, ticket })
    const member = granted.length > 0 ? this.#member : null
    const write = { ...this.key, version: known.version, stored, member }
    return { write, granted, refused, changes }
  }

  /**
   * Returns the current ticket if it is still valid. After a grant the member goes behind all
   * others.
   */
  #ticket(isServed: boolean, refused: readonly PermitRequest[], now: number): WaitTicket | null {
    const position = this.#positionFor(refused, now)
    const current = this.#known?.waiting[this.#member] ?? null
    if (isServed) return position && newTicket({ ...position, since: now }, now, this.#ticketMs)
    return isCurrent(current, position, now, this.#ticketMs)
      ? current
      : position && newTicket(position, now, this.#ticketMs)
  }

  #admit(changed: RateState, now: number, isMember: boolean) {
    const granted: PermitRequest[] = []
    const refused: PermitRequest[] = []
    let state = changed
    for (const request of isMember ? this.#requests : []) {
      const held = this.#others + this.#ownConnections + granted.length
      const isGranted = mayStart(
        state,
        this.#limits,
        now,
        held + this.reservedForOthers(request.single, now),
      )
      if (isGranted) state = onStarted(state, this.#limits, now)
      ;(isGranted ? granted : refused).push(request)
    }
    return { state, granted, refused }
  }

  /** Applies a successful write, and grants its requests. */
  written(plan: PendingWrite, version: number, at: number, now: number): void {
    this.#known = { ...plan.write.stored, version, at }
    const isSameMember = plan.write.member === null || plan.write.member === this.#member
    const { granted, refused } = plan
    if (granted.length > 0) this.#waiters.served(now)
    this.#resolveRequests(
      isSameMember ? plan : { ...plan, granted: [], refused: [...granted, ...refused] },
    )
    this.#recompute(now, false)
  }

  fail(error: unknown): void {
    const requests = [...this.#requests]
    this.#requests.clear()
    for (const request of requests) request.fail(error)
  }

  #resolveRequests({ granted, refused, changes }: Omit<PendingWrite, 'write'>): void {
    this.#changes.splice(0, changes)
    this.#ownConnections += granted.length
    for (const request of [...granted, ...refused]) this.#requests.delete(request)
    for (const request of granted) request.decide(true)
    for (const request of refused) request.decide(false)
  }

  #recompute(now: number, isChanged = true): void {
    const stored = (this.#known as KnownState).state
    this.#state = this.#changes.reduce((state, change) => change(state, now), stored)
    if (isChanged) this.#waiters.callAll()
  }
}

/** The requests of this process that wait for a connection under one rate state. */
class Waiters {
  /** Callbacks on changes; true if a client waits for the answer. */
  readonly #calls = new Map<() => void, boolean>()
  #since: number | null = null

  get isEmpty(): boolean {
    return this.#calls.size === 0
  }

  get hasSingle(): boolean {
    return [...this.#calls.values()].includes(true)
  }

  add(call: () => void, single: boolean, now: number): () => void {
    this.#since ??= now
    this.#calls.set(call, single)
    return () => void this.#calls.delete(call)
  }

  callAll(): void {
    for (const call of [...this.#calls.keys()]) call()
  }

  /** Since when a request waits; `now` if none does. */
  since(now: number): number {
    return this.#since ?? now
  }

  /** Records that a request got its permit: the others wait from now on. */
  served(now: number): void {
    this.#since = this.isEmpty ? null : now
  }

  /**
   * Returns their position among the waiting members; null if none waits. `asking` are requests
   * that wait from now on.
   */
  position(pending: readonly { readonly single: boolean }[], now: number): QueuePosition | null {
    if (this.isEmpty && pending.length === 0) {
      this.#since = null
      return null
    }
    const single = this.hasSingle || pending.some(({ single }) => single)
    return { since: this.since(now), single }
  }
}
