import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type {
  FeedbackReportAnswer,
  FeedbackSource,
  FeedbackSourceList,
} from '../../client/types.ts'
import { PROVIDERS } from '../../feedback/providers/providers.ts'
import { joinWords } from '../../platform/format.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { confirmed } from '../page/form.ts'
import type { Html } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { empty, notice, Refusal } from '../page/notice.ts'
import { card, primaryLink } from '../page/parts.ts'
import { table } from '../page/table.ts'
import { ago, copyable, time } from '../page/text.ts'
import { redirectWithNote } from '../session/cookie.ts'
import { may, readOnlyNote } from '../session/signed-in.ts'
import { receivedCard } from './received.ts'
import { keyLabel, stepsAfter, urlWarning } from './setup.ts'

const SOURCES = '/feedback/sources'
/** The page above those of a source. */
export const BACK = { href: SOURCES, label: 'Feedback sources' }

/** Routes that list, show and delete feedback sources. */
export function sourceRoutes({ settings }: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .get(SOURCES, async c => {
      const sources = await findSources(c)
      const isEmpty = sources.length === 0
      return page(c, {
        title: 'Feedback sources',
        back: { href: '/feedback', label: 'Feedback' },
        intro: 'URLs to which email providers send bounces, deliveries and complaints.',
        ...(isEmpty ? {} : { actions: newButton(c) }),
        body: isEmpty ? hint(c) : sourceTable(sources),
      })
    })
    .get(`${SOURCES}/:id`, async c => sourcePage(c, await findSource(c), settings.baseUrl))
    .post(`${SOURCES}/:id/delete`, async c => {
      const id = encodeURIComponent(c.req.param('id'))
      await c.get('api').ask(`/v1/feedback/sources/${id}`, { method: 'DELETE' })
      return redirectWithNote(
        c,
        SOURCES,
        'Feedback source deleted. Requests to its URL are refused.',
      )
    })
}

/** An account has at most 50 sources. */
async function findSources(c: Context<Env>): Promise<readonly FeedbackSource[]> {
  const { data } = await c.get('api').ask<FeedbackSourceList>('/v1/feedback/sources')
  return data.sources
}

/** Returns a source of the account; throws a 404 Refusal if there is none. */
async function findSource(c: Context<Env>): Promise<FeedbackSource> {
  const source = (await findSources(c)).find(({ id }) => id === c.req.param('id'))
  if (source !== undefined) return source
  throw new Refusal(404, 'Feedback source not found. It may have been deleted.')
}

const newButton = (c: Context<Env>): Html =>
  may(c.get('user'), 'feedback:write')
    ? primaryLink(`${SOURCES}/new`, 'New source', 'plus')
    : readOnlyNote(c, 'feedback:write')

const hint = (c: Context<Env>): Html =>
  empty({
    title: 'No feedback sources yet',
    icon: 'send',
    action: newButton(c),
    text: `A feedback source receives the events of ${PROVIDER_TITLES}. Later verdicts use them, and the Feedback page compares verdicts with them.`,
  })

const PROVIDER_TITLES = joinWords(
  Object.values(PROVIDERS).map(({ title }) => title),
  'or',
)

const sourceTable = (sources: readonly FeedbackSource[]): Html =>
  table({
    caption: 'Feedback sources of this account, oldest first',
    columns: [
      {
        label: 'Provider',
        kind: 'name',
        cell: ({ id, provider }) =>
          html`<a href="${SOURCES}/${id}">${PROVIDERS[provider].title}</a><br /><small>${id}</small>`,
      },
      { label: 'Last request', cell: one => ago(one.last_received_at, 'Never') },
      { label: 'Key', kind: 'long', cell: keyOf },
      { label: 'Created', cell: one => ago(one.created_at) },
    ],
    rows: sources,
  })

/** Renders the key if it is public, otherwise its end. */
const keyOf = ({ provider, key_hint }: FeedbackSource): Html =>
  html`<code>${PROVIDERS[provider].key?.isPublic ? '' : '…'}${key_hint}</code>`

async function sourcePage(
  c: Context<Env>,
  source: FeedbackSource,
  baseUrl: string,
): Promise<Response> {
  const { title } = PROVIDERS[source.provider]
  const { data } = await c.get('api').ask<FeedbackReportAnswer>('/v1/feedback/report')
  const at = source.last_received_at
  return page(c, {
    title: `Feedback from ${title}`,
    back: BACK,
    body: html`
      ${urlWarning(baseUrl)}
      ${
        at === null
          ? notice('info', `No request of ${title} has arrived yet. Complete the steps below.`)
          : notice('ok', html`${title} sent its last request ${time(at)}.`)
      }
      ${card({
        title: 'URL',
        body: html`
          <p>${copyable(source.url)}</p>
          <p><small>${keyLabel(source.provider)} ${keyOf(source)}. Created ${time(source.created_at)}. ID
            <code>${source.id}</code>.</small></p>`,
      })}
      ${card({ title: `Set up ${title}`, body: stepsAfter(source.provider) })}
      ${receivedCard(data.received.filter(one => one.source === source.provider))}
      ${may(c.get('user'), 'feedback:write') ? changes(c, source) : html`<p>${readOnlyNote(c, 'feedback:write')}</p>`}`,
  })
}

const changes = (c: Context<Env>, { id, provider }: FeedbackSource): Html => html`
  <div class="grid">
    ${card({
      title: 'Replace',
      body: html`
        <p>To change the key or the password without losing events, create a second source, set its URL at
          ${PROVIDERS[provider].title}, and delete this one.</p>
        <p><a class="button" href="${SOURCES}/new?provider=${provider}">New source</a></p>`,
    })}
    ${card({
      title: 'Delete',
      body: html`
        <p>Delete a source that is no longer needed, or whose key or password was leaked.</p>
        ${confirmed(c, {
          action: `${SOURCES}/${id}/delete`,
          label: 'Delete source',
          yes: 'Yes, delete source',
          question: `Requests from ${PROVIDERS[provider].title} to this URL are refused immediately. Feedback already received is kept. This cannot be undone.`,
        })}`,
    })}
  </div>`
