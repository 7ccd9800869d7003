import type { Context } from 'hono'
import { html } from 'hono/html'
import type { SingleResult } from '../../client/types.ts'
import { REASON_TEXTS } from '../../engine/verdict/reason.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import { SECOND } from '../../platform/clock.ts'
import { formatDuration } from '../../platform/format.ts'
import type { Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { notice, reasonWord } from '../page/notice.ts'
import { facts } from '../page/parts.ts'
import { ago, badge, statusBadge } from '../page/text.ts'
import { csrfField } from '../session/csrf.ts'
import type { Progress, VerifyForm } from './verify-events.ts'

/** Renders the result of a verification; before it, `current` says what is being done. */
export function verdictCard(
  c: Context<Env>,
  { form, result, error }: Progress,
  current: string,
): Html {
  if (error !== null) {
    return verdict({
      tone: 'unknown',
      badge: statusBadge('warn', 'Not verified'),
      title: form?.email ?? '',
      body: notice('bad', error.error),
    })
  }
  if (result === null || form === null) {
    return verdict({
      tone: 'running',
      badge: statusBadge('running', 'Verifying'),
      title: form?.email ?? '',
      body: html`<p class="muted">${current}</p>`,
    })
  }
  const kind = result.class
  return verdict({
    tone: kind,
    title: result.email,
    body: verdictBody(c, form, result),
    badge: html`${badge(kind)}${result.sandbox ? html` <span class="badge">Simulated</span>` : NOTHING}`,
  })
}

type Verdict = {
  readonly tone: Class | 'running'
  readonly badge: Html
  readonly title: string
  readonly body: Html
}

/** `verify.js` moves the focus to the title. */
const verdict = (o: Verdict): Html => html`
  <div id="verdict" class="is-${o.tone}">
    <div class="row is-level"><h2 id="verdict-title" tabindex="-1">${o.title}</h2> ${o.badge}</div>
    ${o.body}
  </div>`

/** Renders a verdict with its actions. */
const verdictBody = (c: Context<Env>, form: VerifyForm, result: SingleResult): Html => html`
  ${findings(result, suggested => verifyForm(c, { ...form, email: suggested, again: false }, 'Verify suggestion'))}
  ${result.cached ? verifyForm(c, { ...form, email: result.email, again: true }, 'Re-verify now') : NOTHING}`

/**
 * Renders what a result means, what to do and the facts; `action` renders the button beside a
 * suggested address.
 */
export function findings(result: SingleResult, action: (suggested: string) => Html): Html {
  const { means, todo } = REASON_TEXTS[result.reason]
  const evidence = evidenceOf(result)
  return html`
    <p class="means">${means} <span class="muted">${todo}</span></p>
    <p>Action: <b>${result.action.replaceAll('_', ' ')}</b>. <span class="muted">${result.action_reason}</span></p>
    ${fault(evidence)} ${suggestion(result, action)} ${reply(evidence)} ${hints(evidence)}
    ${figures(result, evidence)}`
}

/** Returns the verdict as text for screen readers. */
export const spokenVerdict = ({ email, reason, class: kind }: SingleResult): string =>
  `${email} is ${kind}. ${REASON_TEXTS[reason].means}`

/** Renders the syntax error of an address and its rule. */
const fault = ({ syntax }: Evidence) =>
  syntax === null ? NOTHING : html`<p>${syntax.message} <small>${syntax.rule}</small></p>`

function suggestion(
  { did_you_mean: suggested }: SingleResult,
  action: (suggested: string) => Html,
): Html {
  if (suggested === null || suggested === undefined) return NOTHING
  return html`
    <div class="row suggestion"><p>Did you mean <b>${suggested}</b>?</p> ${action(suggested)}</div>`
}

/** Renders the reply of the mail server and its interpretation. */
function reply({ answer }: Evidence): Html {
  if (answer === null) return NOTHING
  const parts = [answer.code, answer.enhanced_code, answer.text]
  const text = parts.filter(part => part !== null && part !== '').join(' ')
  const quote = text === '' ? NOTHING : html`Reply: <q class="mono">${text}</q> `
  return html`<p>${quote}${PLAIN.has(answer.why) ? NOTHING : answer.meaning}</p>`
}

/** Renders what was reported about the address, and the signals that were found. */
const hints = ({ feedback, signals }: Evidence): Html => html`
  ${feedback === null ? NOTHING : html`<p>Feedback: ${feedback.summary}.</p>`}
  ${signals.map(({ detail, shift }) => html`<p>${detail} <small>Confidence ${shift > 0 ? '+' : '−'}${Math.abs(shift)}</small></p>`)}`

/** Outcomes whose meaning repeats the verdict. */
const PLAIN: ReadonlySet<string> = new Set(['recipient', 'no-mailbox', 'disabled', 'full'])

function figures(result: SingleResult, evidence: Evidence): Html {
  const { flags, retry_after: retryAfterS } = result
  const { operator } = evidence
  return facts([
    ['Reason', html`${reasonWord(result.reason)} <small class="mono">${result.reason}</small>`],
    ['Risk', RISKS[result.risk_level]],
    ['Confidence', `${result.confidence}%`],
    ['Domain', result.provider],
    ['Provider', operator === result.provider ? null : operator],
    ['Mail server', result.mx_host],
    ['Catch-all', yesNo(flags?.is_catch_all)],
    ['Disposable', yesNo(flags?.is_disposable)],
    ['Role account', yesNo(flags?.is_role)],
    ['Free provider', yesNo(flags?.is_free)],
    ['Relay address', flags?.is_relay ? 'Yes' : null],
    ['Source', originOf(result, evidence)],
    ['Duration', formatDuration(result.response_time)],
    ['Retry', retryAfterS === undefined ? null : `in ${formatDuration(retryAfterS * SECOND)}`],
  ])
}

const RISKS: Readonly<Record<SingleResult['risk_level'], string>> = {
  low: 'Low',
  medium: 'Medium',
  high: 'High',
  unknown: 'Unknown',
}

/** Null if it was not tested. */
const yesNo = (flag: boolean | null | undefined) => (flag == null ? null : flag ? 'Yes' : 'No')

/** Returns whether the result is cached; null if no mail server was needed. */
function originOf(result: SingleResult, { answer }: Evidence): Html | string | null {
  if (result.sandbox) return null
  if (result.cached) return html`Cached ${ago(result.checked_at ?? null)}`
  return answer === null ? null : 'Mail server'
}

/** The fields of the evidence that the page shows. */
type Evidence = {
  readonly operator: string | null
  readonly syntax: { readonly message: string; readonly rule: string } | null
  readonly answer: {
    readonly why: string
    readonly code: number | null
    readonly enhanced_code: string | null
    readonly text: string
    readonly meaning: string
  } | null
  readonly feedback: { readonly summary: string } | null
  readonly signals: readonly { readonly detail: string; readonly shift: number }[]
}

/** Reads the evidence of a result. It has no fixed schema, so missing fields are null. */
function evidenceOf({ evidence }: SingleResult): Evidence {
  return { operator: null, syntax: null, answer: null, feedback: null, signals: [], ...evidence }
}

/** Renders the form of the Verify page: address and options. */
export function optionsForm(c: Context<Env>, { email, sandbox, again }: VerifyForm): Html {
  const { isTest } = c.get('user')
  return html`
  <form method="post" action="/verify" id="options" class="card" data-verify>
    ${csrfField(c)}
    <div class="row">
      <p class="field">
        <label for="email">Email address</label>
        <input id="email" name="email" value="${email}" placeholder="bob@example.com" required autofocus
          inputmode="email" autocomplete="off" autocapitalize="none" spellcheck="false" />
      </p>
      <button class="primary">Verify</button>
    </div>
    <label class="tick"><input type="checkbox" id="sandbox" name="sandbox" ${sandbox || isTest ? html`checked` : NOTHING}
      ${isTest ? html`disabled` : NOTHING} /> Sandbox: simulated results, no mail server is contacted, no credits used${isTest ? '; always on with a test key' : ''}</label>
    <label class="tick"><input type="checkbox" id="again" name="again" ${again ? html`checked` : NOTHING} /> Ignore cached results</label>
    ${PREFIXES}
  </form>`
}

/** Lists the sandbox prefixes, as docs/api.md does. */
const PREFIXES = html`
  <details>
    <summary>Sandbox results</summary>
    <p>The start of the address selects the result: <code>valid</code>, <code>invalid</code>, <code>risky</code>,
    <code>catchall</code>, <code>disposable</code>, <code>role</code>, <code>timeout</code>, <code>greylisted</code>,
    <code>mailbox-full</code>, <code>no-mx</code> and <code>typo</code>, as in
    <code>valid-bob@example.com</code>. <code>error-auth</code>, <code>error-ratelimit</code>,
    <code>error-timeout</code> and <code>error-server</code> return an API error. Any other address gets a realistic
    result that never changes.</p>
  </details>`

/** Renders a button that verifies one address. */
export const verifyForm = (
  c: Context<Env>,
  { email, sandbox, again }: VerifyForm,
  label: string | Html,
): Html => html`
  <form method="post" action="/verify" data-verify>
    ${csrfField(c)}<input type="hidden" name="email" value="${email}" />
    ${sandbox ? hidden('sandbox') : NOTHING}${again ? hidden('again') : NOTHING}
    <button>${label}</button>
  </form>`

const hidden = (name: string) => html`<input type="hidden" name="${name}" value="on" />`
