import type { Clock } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import type { Random } from '../../platform/random.ts'
import type { Semaphore } from '../../platform/semaphore.ts'
import type { Resolver } from '../dns/resolver.ts'
import type { AddressFamilies } from '../dns/route.ts'
import type { DestinationLimits } from '../rate-control/destination-limits.ts'
import type { Dial } from '../smtp/dial.ts'
import type { WitnessStore } from './witnesses.ts'

/** A named source identity: the address or proxy to dial from, the HELO name and the sender. */
type Egress = {
  readonly name: string
  /** The fully qualified name of this host for EHLO; its PTR record should match. */
  readonly helo: string
  /** The bare sender address; empty for the null sender `<>`. */
  readonly mailFrom: string
  readonly dial: Dial
  /** Returns the addresses that can be dialed now; default: both families. */
  readonly getFamilies?: () => AddressFamilies
}

/** Time limits for each part of a session, in ms. */
export type Timeouts = {
  readonly connectMs: number
  readonly greetingMs: number
  readonly replyMs: number
  readonly sessionMs: number
}

/** The external dependencies of probing. */
export type ProbeDeps = {
  readonly resolver: Resolver
  /** False while the DNS check fails. Default: true. */
  readonly isDnsTrusted?: () => boolean
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly egress: Egress
  readonly isPublic: (ip: string) => boolean
  readonly smtpPort: number
  /** The time limits if a caller waits for the result, and those of a list. */
  readonly timeouts: { readonly awaited: Timeouts; readonly list: Timeouts }
  /** `demanded`: only if a server requires it, because TLS costs eight times the CPU. */
  readonly startTls: 'demanded' | 'always' | 'never'
  /** A connection of a list holds its slot until it is closed. Single verifications need none. */
  readonly connectionSlots: Semaphore
  /** Storage of recipients that servers accepted. Default: null, which keeps them in this process. */
  readonly witnesses?: WitnessStore | null
  /** Limits over all operators and egresses. If omitted, only each operator's own limit applies. */
  readonly destinationLimits?: DestinationLimits
}
