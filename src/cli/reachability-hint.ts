import type { Config } from '../config/settings.ts'
import type { NoResponseReason, RecipientOutcome } from '../engine/smtp/classify-reply.ts'
import { ENGINE_LOG } from '../engine/telemetry.ts'
import type { Result } from '../engine/verdict/verdict.ts'
import { fillMessage, type Log } from '../platform/log.ts'

export type OutboundHint = {
  /** The log to use during the run. */
  readonly log: Log
  /** Records a result of the run. */
  note(result: Result): void
  /** Whether a mail server was reached. */
  hasReached(): boolean
  /** Returns the hint; null if a mail server was reached or none had to be. */
  atEnd(): string | null
}

/** Detects runs that reached no mail server, unless the log has already reported it. */
export function createOutboundHint(
  log: Log,
  config: Pick<Config, 'log' | 'smtpPort'>,
): OutboundHint {
  const { portBlocked, portIntercepted } = ENGINE_LOG
  const notices = [portBlocked, portIntercepted].map(event =>
    fillMessage(event, `${config.smtpPort}`),
  )
  let isLogged = false
  let anyUnreached = false
  let anyReached = false
  const warn: Log['warn'] = (message, fields) => {
    isLogged ||= notices.includes(message) && config.log !== 'error'
    log.warn(message, fields)
  }
  return {
    log: { ...log, warn },
    note({ cached, evidence: { answer } }) {
      if (cached || answer === null || !hadToBeDialled(answer)) return
      if (gotNoConnection(answer)) anyUnreached = true
      else anyReached = true
    },
    hasReached: () => anyReached,
    atEnd: () =>
      isLogged || config.log === 'silent' || anyReached || !anyUnreached
        ? null
        : hint(config.smtpPort),
  }
}

const hint = (port: number) =>
  `No mail server could be reached on port ${port}. If this happens for every domain, ` +
  `outbound port ${port} is blocked on this network. To check, run "ev doctor".`

const hadToBeDialled = (answer: RecipientOutcome) =>
  !(answer.kind === 'no-response' && UNDIALLED.has(answer.why))

/** Reasons that need no connection. */
const UNDIALLED: ReadonlySet<NoResponseReason> = new Set([
  'no-address',
  'dns',
  'not-public',
  'own-limit',
])

const gotNoConnection = ({ kind, why, stage }: RecipientOutcome) =>
  kind === 'no-response' && stage === 'connect' && (why === 'connect' || why === 'timeout')
