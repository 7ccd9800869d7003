import { html } from 'hono/html'
import type { CheckName } from '../../doctor/doctor.ts'
import type { Block, Pause } from '../../engine/rate-control/controller.ts'
import type { RecipientOutcome } from '../../engine/smtp/classify-reply.ts'
import type { BlockedReason } from '../../engine/smtp/reply-rules/generic.ts'
import { formatNumber, pluralize } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { notice } from '../page/notice.ts'
import { table } from '../page/table.ts'
import { time } from '../page/text.ts'
import { type State, statusIcon } from './findings.ts'
import type { EgressStatus, OperatorStatus, OperatorsStatus } from './source.ts'

/** Renders whether mail servers are reachable and the state of each operator. */
export function operatorsTable({ egresses, shown, left }: OperatorsStatus, now: number): Html {
  const isMany = egresses.length > 1
  return html`
    <section>
      <h2>Mail servers</h2>
      ${egresses.filter(({ closedSince }) => closedSince !== null).map(one => closed(one, isMany))}
      ${shown.length === 0 ? html`<p>${NONE_PROBED}</p>` : operatorRows(shown, isMany, now)}
      ${left === 0 ? NOTHING : html`<p><small>${pluralize(left, 'more provider')} probed recently, with no worse problems.</small></p>`}
    </section>`
}

const NONE_PROBED =
  'No mail server was probed in the last two hours. Probed providers are listed here with their rate, pauses and blocks; those with problems come first.'

const closed = ({ name, closedSince, port }: EgressStatus, isMany: boolean) =>
  notice(
    'bad',
    html`No mail server has been reachable on port ${port}${isMany ? ` from the egress "${name}"` : ''} since
      ${time(closedSince)}. Outbound port ${port} is probably blocked: see <a href="#check-port-25">Port 25</a> below.
      ev retries with each address, at most every 30 seconds. Until then addresses are unknown (no_connect).`,
  )

const operatorRows = (shown: readonly OperatorStatus[], isMany: boolean, now: number): Html =>
  table({
    caption: 'Providers, those with problems first',
    rows: shown,
    columns: [
      { label: 'Provider', kind: 'name', cell: ({ title }) => title },
      isMany ? { label: 'Egress', cell: ({ egress }) => egress } : null,
      { label: 'Status', kind: 'wide', cell: one => state(one, now) },
      {
        label: 'Connections',
        kind: 'number',
        cell: one =>
          html`${formatNumber(one.sessions)} of ${withUsual(one.sessionsAllowed, one.sessionsMax)}`,
      },
      {
        label: 'New per second',
        kind: 'number',
        cell: one => withUsual(rate(one.sessionsPerSecond), rate(one.sessionsPerSecondMax)),
      },
      {
        label: 'Recent probes',
        kind: 'number',
        cell: ({ recent }) => formatNumber(Math.round(recent)),
      },
    ],
  })

function state(one: OperatorStatus, now: number): Html {
  const { state, label } = stateOf(one, now)
  return html`${statusIcon(state, label)} ${details(one, now)}`
}

/** "1 (usually 5)". */
const withUsual = (value: number | string, usual: number | string) =>
  value === usual ? html`${value}` : html`${value} <small>(usually ${usual})</small>`

/** Two significant digits: one connection in five minutes is 0.0033 per second. */
const rate = (perSecond: number) => perSecond.toLocaleString('en', { maximumSignificantDigits: 2 })

function stateOf(one: OperatorStatus, now: number): { state: State; label: string } {
  const { refusal, pause } = one
  if (refusal !== null) {
    const isActive = refusal.until > now && !one.othersAsk
    return isActive ? { state: 'fail', label: 'Blocked' } : { state: 'warn', label: 'Was blocked' }
  }
  if (pause !== null) return { state: 'warn', label: 'Paused' }
  return isSlowed(one) ? { state: 'warn', label: 'Slowed down' } : { state: 'ok', label: 'Normal' }
}

/** Renders the cause, the fix and the effect on addresses; empty if all is normal. */
function details(one: OperatorStatus, now: number): Html {
  if (one.refusal !== null) return blocked(one, one.refusal, now)
  if (one.pause !== null) return paused(one, one.pause)
  return isSlowed(one) ? html`${SLOWED}` : NOTHING
}

const isSlowed = (one: OperatorStatus) =>
  one.sessionsAllowed < one.sessionsMax || one.sessionsPerSecond < one.sessionsPerSecondMax

const SLOWED =
  'The provider recently asked for fewer connections. No action is needed: the rate rises again with each successful connection.'

function blocked(one: OperatorStatus, refusal: Block, now: number): Html {
  const { answer, since, until } = refusal
  const { target, fix } = BLOCK_TEXTS[answer.kind === 'blocked' ? answer.why : 'policy']
  return html`${one.title} has been rejecting ${target} since ${time(since)}: "${replyOf(answer)}". ${fix(checkLinks(one))}
    ${linkIn(one, answer)}
    ${one.othersAsk ? html`The other egresses take over.` : effect(refusal, until > now)}`
}

function effect({ until, skipped }: Block, isActive: boolean): Html {
  const count = skipped === 0 ? '' : ` (${pluralize(skipped, 'address')} so far)`
  return isActive
    ? html`Its addresses are unknown${count} until ${time(until)}; then ev tries again.`
    : html`Its addresses were unknown${count} until ${time(until)}; the next one shows whether the block is lifted.`
}

function paused({ title, unknownStreakMax }: OperatorStatus, { why, since, until }: Pause): Html {
  const resumes = html`No action is needed: lists wait and resume at ${time(until)}.`
  return why === 'throttled'
    ? html`${title} asked for fewer connections at ${time(since)}. ${resumes}`
    : html`${title} rejected ${pluralize(unknownStreakMax, 'address')} in a row as unknown at ${time(since)}.
        Continuing would look like a dictionary attack. ${resumes} If this happens often, the lists are outdated.`
}

/** Renders a link to a doctor check on the same page. */
type CheckLink = (check: CheckName, label: string) => Html

/** Stable IDs keep the keyboard focus when the fragment is refreshed. */
const checkLinks =
  (one: OperatorStatus): CheckLink =>
  (check, label) =>
    html`<a id="${idOf(one)}-${check}" href="#check-${check}">${label}</a>`

const idOf = ({ operator, egress }: OperatorStatus) => `operator-${egress}-${operator}`

type BlockText = {
  readonly target: string
  readonly fix: (link: CheckLink) => Html
}

const BLOCK_TEXTS: Readonly<Record<BlockedReason, BlockText>> = {
  blocklist: {
    target: 'the IP address of this server',
    fix: link => html`It is on a blocklist or has a bad reputation: see ${link('blocklists', 'Blocklists')} below and
      request removal from the list.`,
  },
  rdns: {
    target: 'the host name of this server',
    fix: link => html`Set a PTR record whose name resolves back to the address: see ${link('ptr', 'PTR')} and
      ${link('helo', 'HELO')} below.`,
  },
  sender: {
    target: 'the sender address of this server',
    fix: link => html`See ${link('mail-from', 'Sender')} and ${link('spf', 'SPF')} below, or set another sender with
      <code>--mail-from</code>.`,
  },
  tls: {
    target: 'connections without TLS',
    fix: () => html`Do not run with <code>--starttls never</code>.`,
  },
  auth: {
    target: 'clients that do not authenticate',
    fix: link => html`It expects this server to authenticate, as its customers do: see ${link('ptr', 'PTR')} and
      ${link('blocklists', 'Blocklists')} below.`,
  },
  policy: {
    target: 'this server',
    fix: link => html`Read the reply, and see ${link('ptr', 'PTR')}, ${link('helo', 'HELO')} and
      ${link('blocklists', 'Blocklists')} below.`,
  },
}

/** Formats the reply of a server; a block always has one. */
export function replyOf(answer: RecipientOutcome, charactersMax = REPLY_CHARACTERS_MAX): string {
  if (answer.kind === 'no-response') return sanitizeText(answer.detail, charactersMax)
  const { code, enhanced, text } = answer.reply
  return sanitizeText(`${code} ${enhanced === null ? '' : `${enhanced} `}${text}`, charactersMax)
}

/** Enough for the first sentence of a rejection. */
const REPLY_CHARACTERS_MAX = 300
/** Longer links are not shown; a reply is searched up to ten times this length. */
const LINK_CHARACTERS_MAX = 300

/** Renders the link in a reply, which explains the block or takes removal requests. */
function linkIn(one: OperatorStatus, answer: RecipientOutcome): Html {
  const [link = ''] =
    /https?:\/\/[^\s<>"“”()[\]]+/i.exec(replyOf(answer, 10 * LINK_CHARACTERS_MAX)) ?? []
  const url = URL.parse(link.replace(/(?<![.,;:!?'…])[.,;:!?'…]+$/, ''))
  if (url === null || !url.hostname.includes('.') || url.href.length > LINK_CHARACTERS_MAX) {
    return NOTHING
  }
  return html`See <a id="${idOf(one)}-link" href="${url.href}" rel="noopener noreferrer nofollow">${url.href}</a>.`
}
