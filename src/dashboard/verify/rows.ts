import type { Context } from 'hono'
import { html } from 'hono/html'
import type { Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { verdictCard } from './verdict.ts'
import { type DomainStep, isDone, type Progress } from './verify-events.ts'

/**
 * Renders the result with the steps folded below it. Hidden before the first verification;
 * `verify.js` shows it and replaces its parts by their IDs.
 */
export function outcome(c: Context<Env>, progress: Progress): Html {
  const [verdict, now, ...steps] = parts(c, progress)
  return html`
    <section id="outcome" class="card" aria-label="Result" ${progress.form === null ? html`hidden` : NOTHING}>
      ${verdict}
      <details><summary>Steps ${now}</summary><ol class="steps">${steps}</ol></details>
    </section>`
}

/** Renders the parts that change: the result, the current step, and each step. */
export function parts(c: Context<Env>, progress: Progress): readonly Html[] {
  const steps = [
    { name: 'syntax', title: 'Syntax', ...syntaxRow(progress) },
    { name: 'domain', title: 'Domain', ...domainRow(progress) },
    { name: 'servers', title: 'Mail servers', ...serversRow(progress) },
    { name: 'dialogue', title: 'Dialogue', ...dialogueRow(progress) },
  ]
  const current = steps.find(({ state }) => state === 'now')
  return [
    verdictCard(c, progress, current?.text ?? 'Starting the verification.'),
    html`<small id="steps-now">${current?.title ?? ''}</small>`,
    ...steps.map(row),
  ]
}

/** `open`: the step was inconclusive. `now`: it is running. Null: it has not run. */
type State = 'ok' | 'bad' | 'open' | 'now' | null

type Row = { readonly state: State; readonly text: string; readonly more?: Html }

type Step = Row & { readonly name: string; readonly title: string }

const row = ({ name, title, state, text, more }: Step): Html => html`
  <li id="step-${name}" ${state === null ? NOTHING : html`class="is-${state}"`}>
    <h3>${title}</h3>
    <p>${text}</p> ${more ?? NOTHING}
  </li>`

function syntaxRow(progress: Progress): Row {
  const { form, syntax } = progress
  const text = 'Checks that the address is well-formed.'
  if (syntax !== null) return { state: syntax.ok ? 'ok' : 'bad', text: syntax.text }
  if (isDone(progress)) return { state: null, text: 'Not checked.' }
  return { state: form === null ? null : 'now', text }
}

function domainRow(progress: Progress): Row {
  const { syntax, domain } = progress
  if (domain !== null) {
    const state = domain.ok === null ? 'open' : domain.ok ? 'ok' : 'bad'
    return { state, text: domain.text }
  }
  if (isDone(progress)) return { state: null, text: 'Not checked.' }
  const state = syntax?.ok ? 'now' : null
  return { state, text: 'Checks that the domain exists and accepts mail.' }
}

function serversRow(progress: Progress): Row {
  const { domain, servers, cached } = progress
  const list = hostsOf(domain)
  if (cached !== null) return { state: 'ok', text: cached, more: list }
  const last = servers.at(-1)
  if (last !== undefined) {
    // A server without an answer is inconclusive: it says nothing about the address.
    const [text, ...earlier] = servers.map(one => one.text).toReversed()
    const more = html`${earlier.map(line => html`<p>${line}</p>`)}${list}`
    return { state: last.ok ? 'ok' : 'open', text: text ?? '', more }
  }
  if (isDone(progress)) return { state: null, text: 'Not contacted.', more: list }
  const state = domain?.ok ? 'now' : null
  return { state, text: 'Connects to the mail servers of the domain.', more: list }
}

/** ev contacts no more servers than this. */
const HOSTS_SHOWN_MAX = 5

function hostsOf(domain: DomainStep | null): Html {
  const hosts = domain?.hosts ?? []
  if (hosts.length === 0) return NOTHING
  const shown = hosts
    .slice(0, HOSTS_SHOWN_MAX)
    .map(({ preference, host }) => `${preference} ${host}`)
  const left = hosts.length - shown.length
  return html`<p><small>By preference: ${shown.join(', ')}${left > 0 ? ` and ${left} more` : ''}</small></p>`
}

function dialogueRow(progress: Progress): Row {
  const { form, servers, lines, cached } = progress
  const isRunning = form !== null && !isDone(progress)
  // Reserve the space while the dialogue may still start.
  const more = isRunning || lines.length > 0 ? dialogue(lines) : NOTHING
  const text = 'The SMTP dialogue between ev (C) and the mail server (S). No mail is sent.'
  if (lines.length > 0) return { state: isRunning ? 'now' : 'ok', text, more }
  if (cached !== null) return { state: null, text: 'Not needed: the result is cached.', more }
  if (isDone(progress)) return { state: null, text: 'No SMTP dialogue.' }
  return { state: servers.at(-1)?.ok ? 'now' : null, text, more }
}

/** `tabindex` makes the scrollable box reachable by keyboard. */
const dialogue = (lines: readonly string[]) =>
  html`<pre class="dialogue" tabindex="0" role="region" aria-label="Lines of the dialogue">${lines.map(line => `${line}\n`).join('')}</pre>`
