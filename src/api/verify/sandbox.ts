import type { Context } from 'hono'
import { type Address, isFault, type SyntaxFault } from '../../engine/address/address.ts'
import { sleep } from '../../platform/clock.ts'
import type { Capacity } from '../capacity.ts'
import type { Env } from '../context.ts'
import { invalidRequest } from '../errors/request-errors.ts'
import { getHeader } from '../headers.ts'
import { leavePlaces } from '../middleware/admission.ts'
import type { ServiceDeps } from '../service.ts'

export type SandboxDeps = Pick<ServiceDeps, 'clock'> & { readonly capacity: Capacity }

type Simulated = {
  readonly prefix: string
  readonly status: 401 | 429 | 500 | 504
  /** The complete body, without code and request ID, as the interface defines it. */
  readonly body: Readonly<Record<string, string | number>>
}

/** How long a client that the sandbox refuses is told to wait. */
const RETRY_AFTER_S = 60

/** Section 4.9.5 of the interface, with the bodies of section 7; that of the timeout is our own. */
export const SIMULATED_ERRORS: readonly Simulated[] = [
  {
    prefix: 'error-auth',
    status: 401,
    body: { error: 'authentication_error', message: 'Simulated authentication error' },
  },
  {
    prefix: 'error-ratelimit',
    status: 429,
    body: { error: 'rate_limit', retry_after: RETRY_AFTER_S },
  },
  {
    prefix: 'error-timeout',
    status: 504,
    body: { error: 'timeout', message: 'Simulated timeout' },
  },
  {
    prefix: 'error-server',
    status: 500,
    body: { error: 'server_error', message: 'Simulated server error' },
  },
]

/**
 * Returns the error that the sandbox simulates for the prefix of an address; null if there is none,
 * and outside the sandbox.
 */
export function simulatedError(c: Context<Env>, address: Address | SyntaxFault): Response | null {
  if (!c.get('sandbox') || isFault(address)) return null
  const local = address.local.toLowerCase()
  const found = SIMULATED_ERRORS.find(({ prefix }) => local.startsWith(prefix))
  if (found === undefined) return null
  if (found.status === 401) c.header('WWW-Authenticate', 'Bearer')
  if (found.status === 429) c.header('Retry-After', String(RETRY_AFTER_S))
  return c.json(found.body, found.status)
}

/** Simulates a slow response: the sandbox itself answers at once. */
const DELAY_HEADER = 'X-EV-Sandbox-Delay'
const DELAY_NAME = 'x-ev-sandbox-delay'
const DELAY_MAX_MS = 30_000

/** Whether a request asks for a slow response. */
export const hasDelay = (c: Context<Env>): boolean => getHeader(c, DELAY_NAME) !== undefined

/**
 * Waits as long as the header says. The request holds no place of a verification in that time, and none
 * afterwards, because the sandbox answers at once. Throws ApiError if the header is invalid, or too
 * many requests of the account wait.
 */
export async function sandboxDelay(c: Context<Env>, service: SandboxDeps): Promise<void> {
  const header = getHeader(c, DELAY_NAME) ?? ''
  const delayMs = /^\d{1,9}$/.test(header.trim()) ? Number(header) : Number.NaN
  if (!(delayMs <= DELAY_MAX_MS)) {
    throw invalidRequest(
      `${DELAY_HEADER} takes a whole number of milliseconds from 0 to ${DELAY_MAX_MS}.`,
    )
  }
  if (delayMs === 0) return
  leavePlaces(c)
  const end = service.capacity.startDelay(c.get('caller').account.id)
  try {
    await sleep(service.clock, delayMs, c.req.raw.signal)
  } finally {
    end()
  }
}
