import type { MxSays, MxSession } from './mx.ts'

/** The address of a RCPT command; an empty text for any other line. */
export const recipientOf = (line: string): string => /^RCPT TO:<(.*)>$/.exec(line)?.[1] ?? ''

/** The recipients that these lines ask about, in order. */
export const recipientsOf = (lines: readonly string[]): string[] =>
  lines.map(recipientOf).filter(recipient => recipient !== '')

/** Whether a recipient is a random one, of which a server cannot know. */
export const isUnguessable = (recipient: string) => /^[a-z][0-9a-z]{19}@/.test(recipient)

/** What the server says to each recipient; all other commands it accepts. */
export const toRecipients =
  (says: (recipient: string, session: MxSession) => MxSays) =>
  (line: string, session: MxSession) => {
    const recipient = recipientOf(line)
    return recipient === '' ? undefined : says(recipient, session)
  }

/** Accepts these recipients or local parts, and refuses all others as unknown. */
export const knows = (...known: readonly string[]) =>
  toRecipients(to =>
    known.some(one => one === to || one === to.split('@')[0])
      ? '250 2.1.5 Ok'
      : '550 5.1.1 No such user',
  )

/** So many addresses of one domain. */
export const users = (count: number, domain = 'a.test') =>
  Array.from({ length: count }, (_, n) => `user${n}@${domain}`)
