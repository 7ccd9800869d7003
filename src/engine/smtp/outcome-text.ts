import { formatDurationInWords } from '../../platform/format.ts'
import type { RecipientOutcome } from './classify-reply.ts'

/** What an answer means and what to do, in a sentence or two for people. */
export function describeOutcome(answer: RecipientOutcome): string {
  const text = SENTENCES[`${answer.kind}/${answer.why}` as keyof typeof SENTENCES]
  if (answer.kind === 'deferred') return `${text} ${retryTimeText(answer.retryAfterMs)}`
  if (answer.kind !== 'blocked' || answer.why !== 'blocklist') return text
  const list = LISTS.find(([pattern]) => pattern.test(answer.reply.text))?.[1]
  return list === undefined ? text : text.replace('on a block list', `on the list of ${list}`)
}

function retryTimeText(waitMs: number | null): string {
  if (waitMs === null) return 'Ask again later.'
  return `Ask again in ${formatDurationInWords(waitMs, Math.ceil)}.`
}

type Key<A> = A extends { kind: infer K extends string; why: infer W extends string }
  ? `${K}/${W}`
  : never

const SENTENCES = {
  'accepted/recipient': 'The server takes mail for this address.',
  'accepted/cannot-verify':
    'The server takes mail for this address without knowing whether it exists. Send with care.',
  'accepted/restricted':
    'The address exists, but takes mail only from senders it has allowed. Ask its owner to allow you.',
  'rejected/no-mailbox': 'The server says that this mailbox does not exist. Do not send to it.',
  'rejected/disabled': 'The mailbox has been disabled or suspended. Do not send to it.',
  'rejected/full': 'The mailbox exists but is full. Try again in some days.',
  'rejected/moved': 'The mailbox has moved elsewhere. Ask its owner for the new address.',
  'rejected/not-hosted': 'The server does not take mail for this domain. Do not send to it.',
  'rejected/no-mail': 'The host says that it takes no mail at all. Do not send to it.',
  'blocked/blocklist':
    'The server refused our address, not yours: it is on a block list or has a poor name. Have it delisted or verify from another address.',
  'blocked/rdns':
    'The server refused our host, not yours: its reverse DNS or its HELO name is not in order. Set a PTR record that matches the HELO name.',
  'blocked/sender':
    'The server refused the sender address that ev uses, not yours. Use a working one whose SPF record allows this machine.',
  'blocked/tls':
    'The server talks only over TLS, and TLS could not be had. Nothing is known of the mailbox.',
  'blocked/auth': 'The server wants a log-in before it answers. Nothing is known of the mailbox.',
  'blocked/policy':
    'The server refused us by a rule of its own. Nothing is known of the mailbox; try later or from another address.',
  'deferred/greylist': 'The server turns strangers away at first (greylisting).',
  'deferred/rate': 'The server finds us too fast. Nothing is known of the mailbox.',
  'deferred/too-many': 'The server takes no more recipients in one go.',
  'deferred/busy': 'The server cannot say at present.',
  'no-response/no-address': 'No mail server of the domain has an address. Mail cannot reach it.',
  'no-response/dns': 'The address of the mail server could not be looked up. Try again later.',
  'no-response/connect':
    'No mail server could be reached. Try again later, and check that port 25 is open here.',
  'no-response/timeout': 'The mail server did not answer in time. Try again later.',
  'no-response/closed': 'The mail server hung up. Try again later.',
  'no-response/tls': 'TLS with the mail server failed. Nothing is known of the mailbox.',
  'no-response/garbage':
    'The mail server answered something that is no answer. Nothing is known of the mailbox.',
  'no-response/not-public':
    'The mail server has an address that is not on the public internet, so it was not asked.',
  'no-response/smtputf8': 'The mail server cannot take an address with such letters.',
} satisfies Record<Key<RecipientOutcome>, string>

/** Lists and filters that name themselves in their refusals. */
const LISTS: readonly [RegExp, string][] = [
  [/spamhaus/i, 'Spamhaus'],
  [/spamcop/i, 'SpamCop'],
  [/barracuda/i, 'Barracuda'],
  [/abusix/i, 'Abusix'],
  [/sorbs/i, 'SORBS'],
  [/proofpoint/i, 'Proofpoint'],
  [/cloudmark/i, 'Cloudmark'],
  [/uceprotect/i, 'UCEPROTECT'],
  [/invaluement/i, 'Invaluement'],
  [/mailspike/i, 'Mailspike'],
  [/talos|senderbase/i, 'Cisco Talos'],
  [/trend ?micro|ers-(?:dul|rbl|qil)/i, 'Trend Micro'],
  [/s3140|s3150|outlook\.com|hotmail/i, 'Microsoft'],
]
