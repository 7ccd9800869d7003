import type { MxSays, MxSession } from './mx.ts'

/** Returns the address of a RCPT command; an empty text for any other line. */
export const recipientOf = (line: string): string => /^RCPT TO:<(.*)>$/.exec(line)?.[1] ?? ''

/** Returns the recipients of these lines, in order. */
export const recipientsOf = (lines: readonly string[]): string[] =>
  lines.map(recipientOf).filter(recipient => recipient !== '')

/** Whether a recipient is a random one, which no server can know. */
export const isRandomRecipient = (recipient: string) => /^[a-z][0-9a-z]{19}@/.test(recipient)

/** A script with these replies to recipients; all other commands are accepted. */
export const toRecipients =
  (says: (recipient: string, session: MxSession) => MxSays) =>
  (line: string, session: MxSession) => {
    const recipient = recipientOf(line)
    return recipient === '' ? undefined : says(recipient, session)
  }

/** A script that accepts these recipients or local parts, and rejects all others as unknown. */
export const knows = (...known: readonly string[]) =>
  toRecipients(to =>
    known.some(one => one === to || one === to.split('@')[0])
      ? '250 2.1.5 Ok'
      : '550 5.1.1 No such user',
  )

/** Returns `count` addresses of one domain. */
export const users = (count: number, domain = 'a.test') =>
  Array.from({ length: count }, (_, n) => `user${n}@${domain}`)

/** Whether a line is a RCPT command. */
export const isRcpt = (line: string) => line.startsWith('RCPT')

/** Whether a line names a recipient `gone…` or a random one. */
export const isMissing = (line: string) =>
  recipientOf(line).startsWith('gone') || isRandomRecipient(recipientOf(line))

/** The reply to a RCPT of a server that rejects missing recipients and accepts all others. */
export const replyToRcpt = (line: string) =>
  isMissing(line) ? '550 5.1.1 No such user' : '250 2.1.5 Ok'

/** A script of this server. */
export const answerRcpt = (line: string) => (isRcpt(line) ? replyToRcpt(line) : undefined)

/** Returns `count` addresses, every fifth of which is missing. */
export const usersAndGone = (count: number) =>
  Array.from({ length: count }, (_, n) => `${n % 5 === 0 ? 'gone' : 'user'}${n}@a.test`)
