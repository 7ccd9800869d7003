import type { Config } from '../../config/settings.ts'
import { EvError } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import { logNotify } from '../../webhooks/alerts/log-transport.ts'
import type { Notify } from '../../webhooks/alerts/mail-transport.ts'
import { smtpNotify } from '../../webhooks/alerts/smtp-transport.ts'

/** How notices leave: by a mail server, in our name; null: they are lines of the log. */
export type MailTransport = { readonly url: string; readonly from: string } | null

/** Reads it from the settings. Throws EvError('bad_config') where half of it is missing. */
export function mailTransport({ notifySmtp, notifyFrom, notifyTo }: Config): MailTransport {
  if (notifySmtp !== null && notifyFrom !== null) return { url: notifySmtp, from: notifyFrom }
  if (notifySmtp !== null) {
    throw halfOf('--notify-smtp', '--notify-from', 'the address that notices come from')
  }
  const given = notifyFrom !== null ? '--notify-from' : notifyTo !== null ? '--notify-to' : null
  if (given === null) return null
  throw halfOf(given, '--notify-smtp', 'the mail server that takes them')
}

/** The door that they leave by. */
export const notifyBy = (way: MailTransport, log: Log): Notify =>
  way === null ? logNotify(log) : smtpNotify(way)

const halfOf = (given: string, missing: string, what: string) =>
  new EvError(
    'bad_config',
    `Notices by mail need a server and a sender: ${given} is there, ${missing} is not. Give ${what} with ${missing}, or leave both out: notices are lines of the log then.`,
  )
