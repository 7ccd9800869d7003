import { type Reason, VERDICT_BY_REASON } from '../../src/engine/verdict/reason.ts'
import { toClass } from '../../src/engine/verdict/verdict.ts'
import type { Clock } from '../../src/platform/clock.ts'
import { type ListMail, startMail } from '../lists/list-mail.ts'
import { mail } from '../support/engine.ts'
import type { MxSession } from '../support/mx.ts'
import { isRandomRecipient, recipientOf } from '../support/recipients.ts'

/** A list that takes the common ways: accepted, rejected, greylisted, without a server, repeated. */
export const TEXTS = [
  'ann@a.test',
  'gone@a.test',
  'ann@grey.test',
  'ann@absent.test',
  'nonsense',
  'ann@a.test',
]

export const REASONS = [
  'accepted_email',
  'rejected_email',
  'accepted_email',
  'invalid_domain',
  'invalid_email',
  'accepted_email',
]

/** Starts the mail servers of the list. They remember their clients while ev restarts. */
export function startSmallMail(clock: Clock): ListMail {
  const greylisted = new Set<string>()
  const answer = (line: string, { to }: MxSession) => {
    const recipient = recipientOf(line)
    if (recipient === '') return undefined
    if (to.ip === '192.0.2.2' && !isRandomRecipient(recipient) && !greylisted.has(recipient)) {
      greylisted.add(recipient)
      return '450 4.2.0 Greylisted, try again later'
    }
    return recipient.startsWith('ann@') ? '250 2.1.5 Ok' : '550 5.1.1 No such user'
  }
  const zone = {
    ...mail('a.test', '192.0.2.1'),
    ...mail('grey.test', '192.0.2.2'),
    'hook.test': { A: ['8.8.8.8'] },
  }
  return startMail(() => ({ zone, servers: () => answer }), clock)
}

/**
 * Whether a reason is that of a run without failures, or, if the failure may be the cause, unknown.
 */
export const isExpected = (
  reason: string | null | undefined,
  expected: string | undefined,
  mayBeUnknown: boolean,
): boolean =>
  reason === expected ||
  (mayBeUnknown && reason != null && toClass(VERDICT_BY_REASON[reason as Reason]) === 'unknown')

/** Describes the rows of the list if one has no reason, or a wrong one. */
export function describeWrongRows(
  reasons: readonly (string | null | undefined)[],
  mayBeUnknown: boolean,
): string[] {
  const isRight = (expected: string, row: number) =>
    isExpected(reasons[row], expected, mayBeUnknown)
  const isWhole = reasons.length === REASONS.length && REASONS.every(isRight)
  return isWhole ? [] : [`wrong rows: ${reasons.join(', ')}`]
}
