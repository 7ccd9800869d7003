import { mail } from './engine.ts'
import type { MxSession } from './mx.ts'
import { toRecipients } from './recipients.ts'
import { createTestService } from './service.ts'

// Services with a list in a certain state, which a real worker has brought about.

type TestService = Awaited<ReturnType<typeof createTestService>>
type ServiceOptions = NonNullable<Parameters<typeof createTestService>[0]>
type ListOptions = Parameters<TestService['submit']>[1]
type ListRows = Parameters<TestService['submit']>[0]

export const SANDBOX = { headers: { 'X-EV-Sandbox': 'true' } } as const

/** Submits a list to the sandbox, and returns its ID once it is finished. */
export async function submitSimulated(
  { submit, finished }: Pick<TestService, 'submit' | 'finished'>,
  rows: ListRows,
  list: ListOptions = {},
): Promise<string> {
  const id = await submit(rows, { ...SANDBOX, ...list })
  await finished(id)
  return id
}

/** Creates a service with a finished list, whose results are simulated. */
export async function createSimulatedList(
  rows: ListRows,
  list: ListOptions = {},
  options: ServiceOptions = {},
) {
  const service = await createTestService({ ...options, works: true })
  const id = await submitSimulated(service, rows, list)
  return { ...service, id, path: `/v1/jobs/${id}` }
}

/**
 * Replies by the local part: `risky…` is neither accepted nor rejected, `valid…` and `user…` are
 * accepted, and all others are rejected.
 */
export const byLocalPart = toRecipients(to => {
  if (to.startsWith('risky')) return '252 2.1.5 Cannot verify the user'
  return /^(valid|user)/.test(to) ? '250 2.1.5 Ok' : '550 5.1.1 No such user'
})

const HELD_IP = '192.0.2.9'

/** The first two rows get results; the mail server of the others does not reply. */
export const HALFWAY = [
  'valid@a.test',
  'risky@a.test',
  ...Array.from({ length: 4 }, (_, n) => `user${n}@held.test`),
] as const

/** Options of a service that stops halfway through this list, and a function that lets it continue. */
export function stopHalfway() {
  const { promise, resolve } = Promise.withResolvers<void>()
  const script = async (line: string, session: MxSession) => {
    if (session.to.ip === HELD_IP) await promise
    return byLocalPart(line, session)
  }
  const options = { works: true, engine: { script, zone: mail('held.test', HELD_IP) } }
  return { options, release: () => resolve() }
}

/** Submits the list, and returns its ID once the first two rows have results. */
export async function submitHalfway(
  { submit, json, clock }: Pick<TestService, 'submit' | 'json' | 'clock'>,
  list: ListOptions = {},
): Promise<string> {
  const id = await submit(HALFWAY, list)
  while ((await json(`/v1/jobs/${id}`)).processed_emails !== 2) await clock.advance(100)
  return id
}

/** Creates a service that has stopped halfway through a list. */
export async function createHalfwayList(list: ListOptions = {}, given: ServiceOptions = {}) {
  const { options, release } = stopHalfway()
  const service = await createTestService({ ...given, ...options })
  const id = await submitHalfway(service, list)
  /** Lets the list continue to its end. */
  const finish = async () => {
    release()
    await service.finished(id)
  }
  return { ...service, id, path: `/v1/jobs/${id}`, release, finish }
}

/**
 * Makes results of lists fail to be stored, for a reason that a retry cannot mend, until the returned
 * function is called.
 */
export function failStoring({ service }: Pick<TestService, 'service'>): () => void {
  const { feedback } = service
  const isEnrolled = feedback.isEnrolled.bind(feedback)
  Object.assign(feedback, { isEnrolled: () => Promise.reject(new Error('a fault')) })
  return () => void Object.assign(feedback, { isEnrolled })
}
