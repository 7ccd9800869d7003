import { errorMessage } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { MailServer } from './smtp-server.ts'

/** Why a mail server did not take a mail, in a sentence that holds neither the name nor the password for it. */
export function faultText(
  error: unknown,
  { host, port }: Pick<MailServer, 'host' | 'port'>,
): string {
  const { code = '', responseCode } = error as { code?: string; responseCode?: number }
  const server = `The mail server ${host.includes(':') ? `[${host}]` : host}:${port}`
  const status = responseCode === undefined ? '' : ` (${responseCode})`
  if (code === 'EAUTH') return `${server} does not take the name and the password${status}.`
  return `${server} did not take it: ${sanitizeText(errorMessage(error))}`
}
