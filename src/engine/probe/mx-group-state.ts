import type { LearnedReplies } from '../learned-replies/learned-replies.ts'
import type { RateController } from '../rate-control/controller.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import type { CatchAllCache } from './catch-all.ts'
import type { DomainBlocks } from './domain-blocks.ts'
import type { ProbeDeps, Timeouts } from './egress.ts'
import type { HostHealth } from './host-health.ts'
import type { ProbeTarget } from './mx-groups.ts'
import type { OutboundReachability } from './outbound-reachability.ts'
import type { ProbeOptions } from './probe-options.ts'
import type { ConnectionInfo } from './probe-outcome.ts'
import type { ServerLimits } from './server-limits.ts'
import type { ServerKeys, Witnesses } from './witnesses.ts'

/** What an egress knows of mail servers, for all of its probes. */
export type EgressState = {
  readonly deps: ProbeDeps
  readonly catchAll: CatchAllCache
  readonly learned: LearnedReplies
  readonly hosts: HostHealth
  readonly limits: ServerLimits
  readonly witnesses: Witnesses
  readonly domains: DomainBlocks
  readonly reachability: OutboundReachability
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
  readonly egress: EgressState
  readonly operator: string
  readonly rateController: RateController
  readonly options: ProbeOptions
  readonly timeouts: Timeouts
  /** When the current connection was started, monotonic ms. */
  readonly startedAt: number
  /** Whether the targets include some that the last connection rejected and that are asked again. */
  readonly isInDoubt: boolean
  /** Whether other connections may take targets that a connection is not expected to reach. */
  readonly canReturn: boolean
  /** Targets without an answer. */
  readonly pending: ReadonlySet<Q>
  /** The most recipients for the next transaction. */
  readonly transactionMax: number
  /** Whether the domain of a target is a catch-all, as far as known before any probe. */
  catchAllOf(target: Q): boolean | null
  catchAllKey(target: Q, host: string | null): string
  serverKeys(host: string, ip: string): ServerKeys
  /**
   * Whether a reply shows that a host does not serve its domain while others of its preference may.
   * They are dialed before it from now on.
   */
  turnToEquals(host: string, answer: RecipientOutcome): boolean
  reduceBatchSize(max: number): void
  /** Records, for later connections too, that a host accepts at most `taken` per transaction. */
  noteTransactionMax(host: string, taken: number): void
  isRefused(batch: readonly Q[]): boolean
  notBlocked(target: Q): void
  blockedAtRcpt(target: Q, answer: RecipientOutcome): void
  resolveBlocked(): void
  /** Removes targets, which other connections probe. */
  returnTargets(targets: readonly Q[]): void
  setTlsDemand(answer: RecipientOutcome, facts: ConnectionInfo): void
  stopPipelining(host: string): void
  /** Records the first target without a reply when a server went silent or closed the connection. */
  onSilence(target: Q): void
  resolve(
    target: Q,
    answer: RecipientOutcome,
    facts: ConnectionInfo,
    catchAllInStep?: Promise<boolean> | null,
  ): void
  resolveRemaining(answer: RecipientOutcome, facts: ConnectionInfo): void
}
