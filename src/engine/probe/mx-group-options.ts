import type { LearnedReplies } from '../learned-replies/learned-replies.ts'
import type { RateController } from '../rate-control/controller.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import type { CatchAllCache } from './catch-all.ts'
import type { DomainBlocks } from './domain-blocks.ts'
import type { ProbeDeps } from './egress.ts'
import type { HostHealth } from './host-health.ts'
import type { ProbeTarget } from './mx-groups.ts'
import type { OutboundReachability } from './outbound-reachability.ts'
import type { ProbeListener } from './probe-listener.ts'
import type { ConnectionInfo, ProbeResult } from './probe-outcome.ts'

export type ProbeOptions<Q extends ProbeTarget> = {
  /** Aborts every session immediately. */
  readonly signal: AbortSignal
  /** Lets the transaction in flight finish; the remaining targets are returned unprobed. */
  readonly drain: AbortSignal
  /**
   * One address that a caller waits for: the random recipient of the catch-all test leaves in the
   * same write as the real one.
   */
  readonly single: boolean
  /** Several addresses that a caller waits for: like a single one, they use no connection slot. */
  readonly urgent?: boolean
  /** The longest pause to wait out, in ms; after a longer one the rest is returned as deferred. */
  readonly timeoutMs: number
  readonly dialogue: boolean
  /** Receives dial attempts and dialogue lines as they happen. */
  readonly listener?: ProbeListener | null
  /** Called once per target, as soon as the replies of its connection are known to be in step. */
  readonly onProbed: (target: Q, probed: ProbeResult) => void
  /**
   * Called in place of `onProbed` for a target whose MX address is at its connection limit: retry
   * it in `delayMs`. If omitted, the probe waits for a permit, however long that takes.
   */
  readonly onRetryLater?: ((target: Q, delayMs: number) => void) | undefined
  /**
   * Called in place of `onProbed` for targets that the connection is not expected to reach before
   * its limit of refusals, while another connection may be opened for them. If omitted, they are
   * probed one connection after another.
   */
  readonly onReturned?: ((targets: readonly Q[]) => void) | undefined
}

export type MxGroupProbeOptions<Q extends ProbeTarget> = ProbeOptions<Q> & {
  readonly deps: ProbeDeps
  readonly operator: string
  readonly rateController: RateController
  readonly catchAll: CatchAllCache
  /**
   * Resolves when the catch-all results of other processes are loaded; null if there are none to
   * load. Never rejects.
   */
  readonly loaded: Promise<void> | null
  readonly learned: LearnedReplies
  readonly hosts: HostHealth
  readonly domains: DomainBlocks
  readonly reachability: OutboundReachability
  /** Receives a promise for the close of each connection, which may follow the last answer. */
  readonly onDrain: (closed: Promise<void>) => void
}

/**
 * A domain to ask again over a new connection, because nothing shows yet whether the refusal of its
 * random recipient is a block: an accepted recipient, the random one, and an accepted one.
 */
export type SecondLook<Q extends ProbeTarget> = {
  readonly target: Q
  readonly before: string
  readonly after: string
}

/** State of the probe of an MX group, shared by its successive connections. */
export type MxGroupState<Q extends ProbeTarget> = {
  readonly options: MxGroupProbeOptions<Q>
  /** Targets without an answer. */
  readonly pending: ReadonlySet<Q>
  /** The most recipients for the next transaction. */
  readonly transactionMax: number
  reduceBatchSize(max: number): void
  isRefused(batch: readonly Q[]): boolean
  notBlocked(target: Q): void
  blockedAtRcpt(target: Q, answer: RecipientOutcome): void
  resolveBlocked(): void
  /** Removes targets, which other connections probe. */
  returnTargets(targets: readonly Q[]): void
  setTlsDemand(answer: RecipientOutcome, facts: ConnectionInfo): void
  stopPipelining(host: string): void
  resolve(
    target: Q,
    answer: RecipientOutcome,
    facts: ConnectionInfo,
    catchAllInStep?: Promise<boolean> | null,
  ): void
  resolveRemaining(answer: RecipientOutcome, facts: ConnectionInfo): void
}
