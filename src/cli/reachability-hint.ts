import type { Config } from '../config/settings.ts'
import { portBlockedMessage } from '../engine/probe/outbound-reachability.ts'
import type { NoResponseReason, RecipientOutcome } from '../engine/smtp/classify-reply.ts'
import type { Result } from '../engine/verdict/verdict.ts'
import type { Log } from '../platform/log.ts'

export type OutboundHint = {
  /** The log to be used meanwhile. */
  readonly log: Log
  /** Takes a result of the run. */
  note(result: Result): void
  /** What to say at the end; null where a mail server was reached or none had to be. */
  atEnd(): string | null
}

/** Watches for runs in which no mail server was reached, and is quiet where the log has said so already. */
export function createOutboundHint(
  log: Log,
  config: Pick<Config, 'log' | 'smtpPort'>,
): OutboundHint {
  const notice = portBlockedMessage(config.smtpPort)
  let received = false
  let anyUnreached = false
  let anyReached = false
  const warn: Log['warn'] = (message, fields) => {
    received ||= message === notice && config.log !== 'error'
    log.warn(message, fields)
  }
  return {
    log: { ...log, warn },
    note({ cached, evidence: { answer } }) {
      if (cached || answer === null || !hadToBeDialled(answer)) return
      if (gotNoConnection(answer)) anyUnreached = true
      else anyReached = true
    },
    atEnd: () =>
      received || config.log === 'silent' || anyReached || !anyUnreached
        ? null
        : hint(config.smtpPort),
  }
}

const hint = (port: number) =>
  `No mail server could be reached on port ${port}. If that is so for every domain, ` +
  `outbound port ${port} is blocked here: run “ev doctor” to find out.`

const hadToBeDialled = (answer: RecipientOutcome) =>
  !(answer.kind === 'no-response' && UNDIALLED.has(answer.why))

/** Told by the DNS alone. */
const UNDIALLED: ReadonlySet<NoResponseReason> = new Set(['no-address', 'dns', 'not-public'])

const gotNoConnection = ({ kind, why, stage }: RecipientOutcome) =>
  kind === 'no-response' && stage === 'connect' && (why === 'connect' || why === 'timeout')
