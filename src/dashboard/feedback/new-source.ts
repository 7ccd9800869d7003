import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { CreatedFeedbackSource } from '../../client/types.ts'
import {
  isProviderName,
  PROVIDER_NAMES,
  PROVIDERS,
  type ProviderName,
} from '../../feedback/providers/providers.ts'
import { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { field, form, nonceField, problemWith, readNonce, sentForm } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import { card, chips } from '../page/parts.ts'
import { capitalize, copyable } from '../page/text.ts'
import { redirectWithNote } from '../session/cookie.ts'
import { explainMissingScope, may } from '../session/signed-in.ts'
import { keyLabel, stepsAfter, stepsBefore, urlWarning } from './setup.ts'
import { BACK } from './sources.ts'

/** Routes that create a feedback source. */
export function newSourceRoutes(deps: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .get('/feedback/sources/new', c => {
      const provider = c.req.query('provider') ?? ''
      return formPage(c, deps, { provider: isProviderName(provider) ? provider : null })
    })
    .post('/feedback/sources', async c => {
      const sent = await sentForm(c)
      const [provider, key, once] = [sent.text('provider'), sent.text('key'), readNonce(sent)]
      const body = { provider, ...(key !== '' && { key }) }
      const created = await c
        .get('api')
        .ask<CreatedFeedbackSource>('/v1/feedback/sources', { body, once })
        .catch(problemWith)
      if (created instanceof ApiProblem) {
        const chosen = isProviderName(provider) ? provider : null
        return formPage(c, deps, { provider: chosen, key, once, problem: created })
      }
      if (created.data.basic_auth !== null) return passwordPage(c, created.data)
      return redirectWithNote(c, `/feedback/sources/${created.data.id}`, 'Feedback source created.')
    })
}

type Shown = {
  readonly provider: ProviderName | null
  readonly key?: string
  readonly once?: string | undefined
  readonly problem?: ApiProblem
}

function formPage(c: Context<Env>, deps: DashboardDeps, shown: Shown): Promise<Response> {
  const { provider, problem } = shown
  const title = 'New feedback source'
  if (!may(c.get('user'), 'feedback:write')) {
    const why = explainMissingScope(c.get('user'), 'feedback:write', 'creating a source requires')
    return page(c, { title, back: BACK, body: notice('info', why), status: 403 })
  }
  return page(c, {
    title,
    back: BACK,
    intro: 'Select your email provider.',
    body: html`
      ${urlWarning(deps.settings.baseUrl)}
      ${chips(
        'Email provider',
        PROVIDER_NAMES.map(name => ({
          href: `/feedback/sources/new?provider=${name}`,
          label: PROVIDERS[name].title,
          isCurrent: name === provider,
        })),
      )}
      ${provider === null ? NOTHING : providerForm(c, deps, { ...shown, provider })}`,
    problem,
    labels: provider === null ? {} : { key: keyLabel(provider) },
  })
}

function providerForm(
  c: Context<Env>,
  { random }: DashboardDeps,
  { provider, key = '', ...shown }: Shown & { readonly provider: ProviderName },
): Html {
  const { title, key: rule } = PROVIDERS[provider]
  return card({
    title,
    body: html`
      ${stepsBefore(provider)}
      ${form(
        c,
        '/feedback/sources',
        html`
          ${nonceField(random, shown)}<input type="hidden" name="provider" value="${provider}" />
          ${
            rule === null
              ? NOTHING
              : field({
                  label: keyLabel(provider),
                  name: 'key',
                  required: true,
                  value: rule.isPublic ? key : '',
                  hint: `${capitalize(rule.expected)}.`,
                })
          }
          <button class="primary">Create source</button>`,
      )}
      <p><small>${rule === null ? 'The next page shows the URL, the username and the password to set' : 'The next page shows the URL to set'} at ${title}.</small></p>`,
  })
}

/** Shows a password once: it is only in this response. */
const passwordPage = (
  c: Context<Env>,
  { id, provider, url, basic_auth }: CreatedFeedbackSource['data'],
): Promise<Response> =>
  page(c, {
    title: 'Feedback source created',
    hasAlerts: false,
    body: html`
      ${notice('warn', `The password is shown only once. Set it at ${PROVIDERS[provider].title} now.`)}
      <section class="card">
        <h2>URL</h2>
        <p>${copyable(url)}</p>
        <h3>Username</h3>
        <p>${copyable(basic_auth?.username ?? '')}</p>
        <h3>Password</h3>
        <p>${copyable(basic_auth?.password ?? '')}</p>
      </section>
      ${card({ title: `Set up ${PROVIDERS[provider].title}`, body: stepsAfter(provider) })}
      <p><a class="button primary" href="/feedback/sources/${id}">I have set it</a></p>`,
  })
