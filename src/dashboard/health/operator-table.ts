import { html } from 'hono/html'
import type { CheckName } from '../../doctor/doctor.ts'
import type { Block, Pause } from '../../engine/rate-control/controller.ts'
import type { RecipientOutcome } from '../../engine/smtp/classify-reply.ts'
import type { BlockedReason } from '../../engine/smtp/reply-rules/generic.ts'
import { formatNumber, pluralize } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { notice } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { type State, statusIcon } from './findings.ts'
import type { EgressStatus, OperatorStatus, OperatorsStatus } from './source.ts'

/** Whether mail servers can be reached, and how each operator takes us. */
export function operatorsTable({ egresses, shown, left }: OperatorsStatus, now: number): Html {
  const isMany = egresses.length > 1
  return html`
    <section>
      <h2>Mail servers</h2>
      ${egresses.filter(({ closedSince }) => closedSince !== null).map(one => closed(one, isMany))}
      ${shown.length === 0 ? html`<p>${NONE_PROBED}</p>` : table(shown, isMany, now)}
      ${left === 0 ? NOTHING : html`<p><small>${pluralize(left, 'more operator')} asked lately, with no trouble worse than these.</small></p>`}
    </section>`
}

const NONE_PROBED =
  'No mail server was asked in the last two hours. Each operator that is asked stands here, with its pace, pauses and refusals: those in trouble first.'

const closed = ({ name, closedSince, port }: EgressStatus, isMany: boolean) =>
  notice(
    'bad',
    html`No mail server can be reached on port ${port} ${isMany ? `from the egress “${name}”` : 'from here'} since
      ${time(closedSince)}: most likely outbound port ${port} is blocked. <a href="#check-port-25">Port 25</a> below
      says more. It is tried again with each address, every half a minute at most; addresses end as unknown
      (no_connect) until it opens.`,
  )

const table = (shown: readonly OperatorStatus[], isMany: boolean, now: number) => html`
  <div class="scroll"><table class="operators">
    <thead><tr>
      <th scope="col">Operator</th>${isMany ? html`<th scope="col">Egress</th>` : NOTHING}<th scope="col">State</th>
      <th scope="col" class="number">Connections</th><th scope="col" class="number">New a second</th>
      <th scope="col" class="number">Asked lately</th>
    </tr></thead>
    <tbody>${shown.map(
      one => html`
        <tr>
          <th scope="row">${one.title}</th>${isMany ? html`<td>${one.egress}</td>` : NOTHING}
          <td>${state(one, now)}</td>
          <td class="number">${formatNumber(one.sessions)} of ${ofMost(one.sessionsAllowed, one.sessionsMax)}</td>
          <td class="number">${ofMost(rate(one.sessionsPerSecond), rate(one.sessionsPerSecondMax))}</td>
          <td class="number">${formatNumber(Math.round(one.recent))}</td>
        </tr>`,
    )}</tbody>
  </table></div>`

function state(one: OperatorStatus, now: number): Html {
  const { state, word } = stateOf(one, now)
  return html`${statusIcon(state, word)} ${said(one, now)}`
}

/** “1 (usually 5)”. */
const ofMost = (value: number | string, most: number | string) =>
  value === most ? html`${value}` : html`${value} <small>(usually ${most})</small>`

/** One in five minutes is 0.003 a second. */
const rate = (perSecond: number) => perSecond.toLocaleString('en', { maximumSignificantDigits: 2 })

/** How an operator takes us, in a word. */
function stateOf(one: OperatorStatus, now: number): { state: State; word: string } {
  const { refusal, pause } = one
  if (refusal !== null) {
    const holds = refusal.until > now && !one.othersAsk
    return holds ? { state: 'fail', word: 'refuses us' } : { state: 'warn', word: 'refused us' }
  }
  if (pause !== null) return { state: 'warn', word: 'paused' }
  return isSlowed(one) ? { state: 'warn', word: 'slowed down' } : { state: 'ok', word: 'as usual' }
}

/** What happened, what to do about it, and what becomes of the addresses; nothing where all is as usual. */
function said(one: OperatorStatus, now: number): Html {
  if (one.refusal !== null) return refused(one, one.refusal, now)
  if (one.pause !== null) return paused(one, one.pause)
  return isSlowed(one) ? html`${SLOWED}` : NOTHING
}

const isSlowed = (one: OperatorStatus) =>
  one.sessionsAllowed < one.sessionsMax || one.sessionsPerSecond < one.sessionsPerSecondMax

const SLOWED =
  'It asked us to slow down a while ago. Nothing to do: the pace grows with each connection that ends well.'

function refused(one: OperatorStatus, refusal: Block, now: number): Html {
  const { answer, since, until } = refusal
  const { target, todo } = REFUSED[answer.kind === 'blocked' ? answer.why : 'policy']
  return html`${one.title} refuses ${target} since ${time(since)}: “${replyOf(answer)}”. ${todo(leads(one))}
    ${linkIn(one, answer)}
    ${one.othersAsk ? html`The other egresses ask it meanwhile.` : ended(refusal, until > now)}`
}

function ended({ until, skipped: turnedAway }: Block, holds: boolean): Html {
  const sofar = turnedAway === 0 ? '' : ` (${pluralize(turnedAway, 'address')} so far)`
  return holds
    ? html`Addresses there end as unknown${sofar} until ${time(until)}; then it is asked again by itself.`
    : html`Addresses there ended as unknown${sofar} until ${time(until)}; the next one shows whether it takes us again.`
}

function paused({ title, unknownStreakMax }: OperatorStatus, { why, since, until }: Pause): Html {
  const goesOn = html`Nothing to do: lists wait, and go on by themselves at ${time(until)}.`
  return why === 'throttled'
    ? html`${title} asked us to slow down at ${time(since)}. ${goesOn}`
    : html`${title} knew none of ${pluralize(unknownStreakMax, 'address')} in a row at ${time(since)}, and
        who goes on then looks like one who guesses names. ${goesOn} Where it comes often, the lists are old.`
}

/** Leads to what the doctor found of something. */
type Lead = (check: CheckName, word: string) => Html

/** By their ids whoever stands on one stays there when the part is shown anew. */
const leads =
  (one: OperatorStatus): Lead =>
  (check, word) =>
    html`<a id="${idOf(one)}-${check}" href="#check-${check}">${word}</a>`

const idOf = ({ operator, egress }: OperatorStatus) => `operator-${egress}-${operator}`

type Refused = {
  readonly target: string
  /** What whoever runs the service can do about it. */
  readonly todo: (lead: Lead) => Html
}

const REFUSED: Readonly<Record<BlockedReason, Refused>> = {
  blocklist: {
    target: 'our address',
    todo: lead => html`It is on a list, or has a bad name there: look at ${lead('blocklists', 'Blocklists')} below, and
      ask whoever runs the list to take it off.`,
  },
  rdns: {
    target: 'our name',
    todo: lead => html`Give the address a name that leads back to it: look at ${lead('ptr', 'PTR')} and
      ${lead('helo', 'HELO')} below.`,
  },
  sender: {
    target: 'our sender',
    todo: lead => html`Look at ${lead('mail-from', 'Sender')} and ${lead('spf', 'SPF')} below, or set another one with
      <code>--mail-from</code>.`,
  },
  tls: {
    target: 'us without TLS',
    todo: () => html`Do not run with <code>--starttls never</code>.`,
  },
  auth: {
    target: 'who does not log in',
    todo: lead => html`It takes us for one of its customers: look at ${lead('ptr', 'PTR')} and
      ${lead('blocklists', 'Blocklists')} below.`,
  },
  policy: {
    target: 'us',
    todo: lead => html`Look at what it says, and at ${lead('ptr', 'PTR')}, ${lead('helo', 'HELO')} and
      ${lead('blocklists', 'Blocklists')} below.`,
  },
}

/** A refusal of us always has a reply. */
export function replyOf(answer: RecipientOutcome, charactersMax = REPLY_CHARACTERS_MAX): string {
  if (answer.kind === 'no-response') return sanitizeText(answer.detail, charactersMax)
  const { code, enhanced, text } = answer.reply
  return sanitizeText(`${code} ${enhanced === null ? '' : `${enhanced} `}${text}`, charactersMax)
}

/** Enough for what a refusal says first. */
const REPLY_CHARACTERS_MAX = 300
/** A link may stand at the end of a long one, but has itself no reason to be long. */
const LINK_CHARACTERS_MAX = 300

/** Where the reply says that one can read more, or ask to be taken off a list. */
function linkIn(one: OperatorStatus, answer: RecipientOutcome): Html {
  const [given = ''] =
    /https?:\/\/[^\s<>"“”()[\]]+/i.exec(replyOf(answer, 10 * LINK_CHARACTERS_MAX)) ?? []
  const url = URL.parse(given.replace(/[.,;:!?'…]+$/, ''))
  if (url === null || !url.hostname.includes('.') || url.href.length > LINK_CHARACTERS_MAX) {
    return NOTHING
  }
  return html`It names <a id="${idOf(one)}-link" href="${url.href}" rel="noopener noreferrer nofollow">${url.href}</a>.`
}
