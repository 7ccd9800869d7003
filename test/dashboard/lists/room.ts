import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createTestDashboard } from '../../support/dashboard.ts'
import { MIXED } from '../../support/job-rows.ts'
import { FORM, form } from '../../support/list-form.ts'
import { stopHalfway, submitHalfway, submitSimulated } from '../../support/list-service.ts'

/** Untrusted text that would run if it were not escaped. */
export const EVIL = '<img src=x onerror=alert(1)>'
export const EVIL_SHOWN = '&lt;img src=x onerror=alert(1)&gt;'

type Sending = {
  /** Form fields; the CSRF token is added first unless given. */
  readonly fields?: Readonly<Record<string, string>>
  readonly fileName?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** The dashboard, with functions that upload lists. */
export async function createListsDashboard(
  options: Parameters<typeof createTestDashboard>[0] = {},
) {
  const services = await createTestDashboard(options)

  /** Sends a form as the page does without JavaScript. */
  async function sendForm(
    deps: Parameters<typeof form>[0],
    { path = '/lists/new', ...o }: Sending & { readonly path?: string } = {},
  ): Promise<Response> {
    const headers = { 'Content-Type': FORM, ...o.headers }
    const body = form(deps) as Uint8Array<ArrayBuffer>
    const { signal = null } = o
    return services.fetch(path, { method: 'POST', headers, body, signal })
  }

  /** Starts a list, as the form does without JavaScript. */
  async function send(
    list: string | Uint8Array,
    { fields, fileName = 'list.csv', ...o }: Sending = {},
  ) {
    const all = { _csrf: await services.csrf(), ...fields }
    return sendForm([...Object.entries(all), ['file', { file: list, name: fileName }]], o)
  }

  /** Sends a list as htmx does, to preview or to start it. */
  async function ask(path: string, list: string | Uint8Array, o: Sending = {}) {
    const { fields = {}, fileName = 'list.csv', ...rest } = o
    const headers = {
      'HX-Request': 'true',
      'X-CSRF-Token': await services.csrf(),
      ...o.headers,
    }
    const deps = [['file', { file: list, name: fileName }] as const, ...Object.entries(fields)]
    const answer = await sendForm(deps, { ...rest, path, headers })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }

  return {
    ...services,
    sendForm,
    send,
    preview: (list: string | Uint8Array, o?: Sending) => ask('/lists/new?dry_run=true', list, o),
    start: (list: string | Uint8Array, o?: Sending) => ask('/lists/new', list, o),
    jobs: () => services.database.db.selectFrom('job').selectAll().execute(),
    /** Signs in to another account with the same browser. */
    async asAnother(): Promise<void> {
      await services.addAccount('acc_2')
      const key = await services.addKey({ accountId: 'acc_2' })
      services.cookies.clear()
      await services.signIn(key)
    },
    /** Signs in with a key that has only this scope. */
    async as(...scopes: NonNullable<Parameters<typeof services.addKey>[0]>['scopes'] & object) {
      const key = await services.addKey({ scopes: ['dashboard', ...scopes] })
      services.cookies.clear()
      await services.signIn(key)
    },
    /** The state of a list; undefined if it does not exist. */
    async state(id: string) {
      return (await services.json(`/v1/jobs/${id}`)).status
    },
    /** Temporary files of uploads. */
    left(): string[] {
      const folder = join(services.service.settings.dataDir, 'uploads')
      return existsSync(folder) ? readdirSync(folder) : []
    },
  }
}

type ListOptions = Parameters<typeof submitHalfway>[1]

/** A dashboard with a finished list, whose results are simulated. */
export async function createSimulatedListDashboard(
  rows: Parameters<typeof submitSimulated>[1] = MIXED,
  list: ListOptions = {},
) {
  const services = await createListsDashboard({ works: true })
  return withList(services, await submitSimulated(services, rows, { name: 'March', ...list }))
}

/** A dashboard that has stopped halfway through a list. */
export async function createHalfwayListDashboard(list: ListOptions = {}) {
  const { options, release } = stopHalfway()
  const services = await createListsDashboard(options)
  const id = await submitHalfway(services, { name: 'March', ...list })
  return { ...withList(services, id), release }
}

/** Creates a dashboard with a queued list that no worker takes. */
export async function createQueuedListDashboard(
  rows: Parameters<typeof submitSimulated>[1] = MIXED,
  list: ListOptions = {},
) {
  const services = await createListsDashboard()
  return withList(services, await services.submit(rows, { name: 'March', ...list }))
}

function withList(services: Awaited<ReturnType<typeof createListsDashboard>>, id: string) {
  const path = `/lists/${id}`
  return { ...services, id, path, page: (query = '') => services.get(`${path}${query}`) }
}
