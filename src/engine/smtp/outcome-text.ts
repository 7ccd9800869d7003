import { formatDurationInWords } from '../../platform/format.ts'
import type { Learned, RecipientOutcome } from './classify-reply.ts'

/** Returns what an outcome means and what to do, in one or two sentences for users. */
export function describeOutcome(answer: RecipientOutcome): string {
  const text = TEXTS[`${answer.kind}/${answer.why}` as keyof typeof TEXTS]
  if (answer.kind === 'deferred') return `${text} ${retryTimeText(answer.retryAfterMs)}`
  if (answer.kind === 'rejected' && answer.learned !== undefined) return learnedText(answer.learned)
  if (answer.kind !== 'blocked' || answer.why !== 'blocklist') return text
  const name = BLOCKLISTS.find(([pattern]) => pattern.test(answer.reply.text))?.[1]
  return name === undefined ? text : text.replace('on a blocklist', `on a blocklist of ${name}`)
}

function learnedText({ scope, domains }: Learned): string {
  const who =
    scope === 'domain'
      ? 'the server gave to a random recipient of this domain'
      : scope === 'operator'
        ? `${domains} domains of this server gave to a random recipient`
        : `${domains} domains with the same server software gave to a random recipient`
  return `This is the reply that ${who}: the mailbox does not exist. Do not send to it.`
}

function retryTimeText(waitMs: number | null): string {
  if (waitMs === null) return 'Try again later.'
  return `Try again in ${formatDurationInWords(waitMs, Math.ceil)}.`
}

type Key<A> = A extends { kind: infer K extends string; why: infer W extends string }
  ? `${K}/${W}`
  : never

const TEXTS = {
  'accepted/recipient': 'The server accepts mail for this address.',
  'accepted/cannot-verify':
    'The server accepts mail for this address without checking that it exists. Send with care.',
  'accepted/restricted':
    'The mailbox exists but accepts mail from approved senders only. Ask its owner to approve you.',
  'rejected/no-mailbox': 'The server reports that this mailbox does not exist. Do not send to it.',
  'rejected/disabled': 'The mailbox is disabled or suspended. Do not send to it.',
  'rejected/full': 'The mailbox exists but is full. Try again in a few days.',
  'rejected/moved': 'The mailbox has moved. Ask its owner for the new address.',
  'rejected/not-hosted': 'The server does not accept mail for this domain. Do not send to it.',
  'rejected/no-mail': 'The host accepts no mail at all. Do not send to it.',
  'blocked/blocklist':
    'The server blocked the IP address of ev, which is on a blocklist or has a poor reputation. Request its removal or verify from another IP address.',
  'blocked/rdns':
    'The server blocked the host of ev because of its reverse DNS or HELO name. Set a PTR record that matches the HELO name.',
  'blocked/sender':
    'The server rejected the sender address of ev. Set a working sender whose SPF record allows this machine.',
  'blocked/tls':
    'The server requires TLS, which could not be established. The mailbox was not checked.',
  'blocked/auth': 'The server requires authentication. The mailbox was not checked.',
  'blocked/policy':
    'The server rejected the probe by its own policy. The mailbox was not checked. Try again later or from another IP address.',
  'deferred/greylist': 'The server defers unknown senders at first (greylisting).',
  'deferred/rate': 'The server is limiting the rate of ev. The mailbox was not checked.',
  'deferred/too-many': 'The server accepts no more recipients in this transaction.',
  'deferred/busy': 'The server is temporarily unable to answer.',
  'no-response/no-address':
    'No mail server of the domain has an IP address. Mail cannot be delivered.',
  'no-response/dns': 'The address of the mail server could not be resolved. Try again later.',
  'no-response/connect':
    'No mail server could be reached. Try again later, and check that outbound port 25 is open.',
  'no-response/timeout': 'The mail server did not answer in time. Try again later.',
  'no-response/closed': 'The mail server closed the connection. Try again later.',
  'no-response/tls': 'The TLS handshake with the mail server failed. The mailbox was not checked.',
  'no-response/garbage': 'The mail server sent an invalid reply. The mailbox was not checked.',
  'no-response/not-public':
    'The mail server has an IP address that is not public, so it was not contacted.',
  'no-response/smtputf8':
    'The mail server does not support internationalized addresses (SMTPUTF8).',
  'no-response/own-limit':
    'ev did not contact the mail server, to stay within its own limits. The mailbox was not checked. Try again in a few seconds, or verify many addresses as a list, which waits.',
} satisfies Record<Key<RecipientOutcome>, string>

/** Blocklists and filters that name themselves in their replies. */
const BLOCKLISTS: readonly [RegExp, string][] = [
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
