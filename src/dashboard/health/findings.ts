import { html } from 'hono/html'
import type { Check, CheckName } from '../../doctor/doctor.ts'
import type { Finding } from '../../doctor/finding.ts'
import { pluralize } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { notice } from '../page/notice.ts'
import { time } from '../page/text.ts'
import type { Examination } from './source.ts'

/** What the doctor found; the part asks for itself anew while he is at it. */
export function findings({ checks, at, isRunning, fault }: Examination): Html {
  const again = html`hx-get="/doctor/findings" hx-trigger="every 1s" hx-swap="outerHTML"`
  return html`
    <section id="findings" ${isRunning ? again : NOTHING}>
      <h2>This machine</h2>
      <p>${isRunning ? running(at) : summary(checks)} ${at === null ? NOTHING : examined(at)}</p>
      ${fault === null ? NOTHING : notice('bad', `The examination failed: ${sanitizeText(fault)}. Try again, or run: ev doctor`)}
      ${checks.length === 0 ? NOTHING : table(checks)}
    </section>`
}

const running = (at: number | null) =>
  at === null
    ? 'The machine is being examined, as “ev doctor” does. What is found appears here within 20 seconds; without scripts, load this page again.'
    : 'The machine is being examined again; what was found last stands here until then.'

const examined = (at: number) => html`<small>Examined at ${time(at)}.</small>`

function summary(checks: readonly Check[]): string {
  const numberOf = (state: State) => checks.filter(check => check.state === state).length
  const [failed, warned] = [numberOf('fail'), numberOf('warn')]
  const better = warned === 0 ? '' : `${pluralize(warned, 'thing')} could be better`
  if (failed > 0) {
    const must = `${pluralize(failed, 'thing')} must be mended before mail servers can be asked`
    return `${must}${better === '' ? '' : `; ${better}`}.`
  }
  if (checks.length === 0) return 'Nothing was found yet.'
  return better === '' ? 'It is fit to ask mail servers.' : `It can ask mail servers; ${better}.`
}

const table = (checks: readonly Check[]) => html`
  <div class="scroll"><table>
    <thead><tr><th scope="col">What</th><th scope="col">State</th><th scope="col">What was found, and what to do</th></tr></thead>
    <tbody>${checks.map(
      ({ check, egress, state, says, todo }, i) => html`
        <tr ${isFirst(checks, i) ? html`id="check-${check}"` : NOTHING}>
          <th scope="row">${NAMES[check]}${egress === null ? NOTHING : html` <small>${egress}</small>`}</th>
          <td>${statusIcon(state)}</td>
          <td>${says}${todo === null ? NOTHING : html`<br /><b>To do:</b> ${todo}`}</td>
        </tr>`,
    )}</tbody>
  </table></div>`

/** Other parts of the page lead to the first of a name. */
const isFirst = (checks: readonly Check[], i: number) =>
  checks.findIndex(({ check }) => check === checks[i]?.check) === i

const NAMES: Readonly<Record<CheckName, string>> = {
  dns: 'DNS',
  'port-25': 'Port 25',
  address: 'Our address',
  ptr: 'Name of the address (PTR)',
  helo: 'HELO name',
  'mail-from': 'Sender',
  spf: 'SPF',
  blocklists: 'Blocklists',
  ipv6: 'IPv6',
  clock: 'Clock',
  disk: 'Disk',
  'open-files': 'Open files',
  database: 'Database',
  'data-directory': 'Data directory',
}

export type State = Finding['state']

/** How well something is, told by its sign and a word as well as by its colour. */
export function statusIcon(state: State, word = WORDS[state]): Html {
  const { sign, kind } = LOOKS[state]
  return html`<span class="badge is-${kind}"><span aria-hidden="true">${sign}</span> ${word}</span>`
}

const WORDS: Readonly<Record<State, string>> = {
  ok: 'well',
  warn: 'could be better',
  fail: 'to mend',
}

const LOOKS: Readonly<Record<State, { readonly sign: string; readonly kind: string }>> = {
  ok: { sign: '✓', kind: 'ok' },
  warn: { sign: '!', kind: 'warn' },
  fail: { sign: '✕', kind: 'bad' },
}
