import type { Clock } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import type { Random } from '../../platform/random.ts'
import type { Resolver } from '../dns/resolver.ts'
import type { DestinationLimits } from '../rate-control/destination-limits.ts'
import type { Dial } from '../smtp/dial.ts'
import type { ConnectionSemaphore } from './connection-semaphore.ts'

/** A named source identity: who we say we are, and from where. */
export type Egress = {
  readonly name: string
  /** Our own fully qualified name, whose PTR should match. */
  readonly helo: string
  /** The bare sender address; empty for the null sender `<>`. */
  readonly mailFrom: string
  readonly dial: Dial
  /** False: IPv6 addresses cannot be dialled from here, so none are looked up beside IPv4 ones. */
  readonly hasIpv6?: boolean
}

/** How long each part of a conversation may take, in ms. */
export type Timeouts = {
  readonly connectMs: number
  readonly greetingMs: number
  readonly replyMs: number
  readonly sessionMs: number
}

/** What probing needs from the world. */
export type ProbeDeps = {
  readonly resolver: Resolver
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly egress: Egress
  readonly isPublic: (ip: string) => boolean
  readonly smtpPort: number
  readonly timeouts: Timeouts
  /** `demanded`: only where a server asks for it, as TLS costs eight times the CPU. */
  readonly startTls: 'demanded' | 'always' | 'never'
  /** A connection keeps its place until its farewell is over. Single questions take none: somebody waits for them. */
  readonly connectionSlots: ConnectionSemaphore
  /** Limits over all operators and egresses. Left out: each operator's own limit is the only one. */
  readonly destinationLimits?: DestinationLimits
}
