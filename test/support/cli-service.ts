import { expect } from 'vitest'
import type { CliSignal } from '../../src/cli/context.ts'
import { type CliOptions, startEv } from './cli.ts'
import type { Ran } from './home.ts'
import { waitUntil } from './wait.ts'

/** `ev serve` running in this process. */
export type CliService = {
  /** The URL from its log. */
  readonly url: string
  /** The output on stdout: the first key, at the first start. */
  readonly key: string
  /** Sends a signal and resolves when the service has ended. */
  end(signal: CliSignal): Promise<Ran>
}

/** Starts the service in a folder, on a free port, with the data directory `data`. */
export async function startService(
  home: string,
  args: readonly string[] = [],
  options: Pick<CliOptions, 'environment' | 'context'> = {},
): Promise<CliService> {
  const all = ['serve', '--data-dir', 'data', '--listen', '127.0.0.1:0', ...args]
  const running = startEv(all, { home, ...options })
  await running.printed('API documentation:', 'stderr')
  return {
    get url() {
      return /listening on (\S+?)"/.exec(running.stderr)?.[1] ?? ''
    },
    get key() {
      return running.stdout.trim()
    },
    end(signal) {
      running.signal(signal)
      return running.ended
    },
  }
}

/** Sends a request with a key; with a body it is a POST of JSON. */
export const request = (
  { url }: Pick<CliService, 'url'>,
  key: string,
  path: string,
  options: { readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Response> =>
  fetch(`${url}${path}`, {
    method: options.body === undefined ? 'GET' : 'POST',
    headers: {
      Authorization: `Bearer ${key}`,
      'Content-Type': 'application/json',
      ...options.headers,
    },
    body: options.body === undefined ? null : JSON.stringify(options.body),
  })

/** Submits a list to a service and returns the ID of the job, once it is completed. */
export async function verifyList(
  service: Pick<CliService, 'url'>,
  key: string,
  options: {
    /** Fields of `POST /v1/verify/batch`. */
    readonly body: { readonly emails: readonly string[] } & Readonly<Record<string, unknown>>
    readonly sandbox?: boolean
  },
): Promise<string> {
  const headers = { 'X-EV-Sandbox': String(options.sandbox ?? false) }
  const created = await request(service, key, '/v1/verify/batch', { body: options.body, headers })
  const { job_id: id, ...rest } = (await created.json()) as { job_id: string }
  expect(id, JSON.stringify(rest)).toBeDefined()
  await waitForJob(service, key, id)
  return id
}

/** Waits until a job is completed. */
export const waitForJob = (service: Pick<CliService, 'url'>, key: string, id: string) =>
  waitUntil(async () => {
    const response = await request(service, key, `/v1/jobs/${id}`)
    return ((await response.json()) as { status: string }).status === 'completed'
  })
