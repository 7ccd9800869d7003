import { expect, test } from 'vitest'
import { COMMAND_LINE } from '../../src/audit.ts'
import { canDecrypt } from '../../src/db/service-secret.ts'
import { SnsCertificates } from '../../src/feedback/providers/sns-certificates.ts'
import { getSource, receiveFeedback } from '../../src/feedback/receive-feedback.ts'
import { listSources } from '../../src/feedback/source-store.ts'
import { createSource, deleteSource, SOURCES_MAX } from '../../src/feedback/sources.ts'
import { MINUTE } from '../../src/platform/clock.ts'
import { createSecretBox } from '../../src/platform/secret-box.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase } from '../support/database.ts'
import { EVENTS, SOURCE_KEYS, sendgridRequest } from '../support/provider-requests.ts'
import { countedRandom } from '../support/random.ts'

async function createServices() {
  const [clock, random] = [fakeClock(), countedRandom()]
  return {
    clock,
    random,
    database: await tempDatabase({ clock }),
    origin: COMMAND_LINE,
    secretBox: createSecretBox('a secret of tests', random),
    certificates: new SnsCertificates(),
    getDocument: async () => null,
    bindToken: async () => true,
    getPlan: async () => ({ name: 'free', storedFeedback: null }),
  }
}

const INPUT = { accountId: 'acc_1', provider: 'sendgrid', key: SOURCE_KEYS.sendgrid } as const

const code = (name: string) => expect.objectContaining({ code: name })

test('a source stores its key encrypted, and an account has a limited number of them', async () => {
  const services = await createServices()
  const { source } = await createSource(services, INPUT)
  expect(source.secret).not.toContain(SOURCE_KEYS.sendgrid)
  expect(await canDecrypt(services.database, services.secretBox)).toBe(true)
  const other = createSecretBox('another secret', services.random)
  expect(await canDecrypt(services.database, other)).toBe(false)
  for (let n = 1; n < SOURCES_MAX; n++) await createSource(services, INPUT)
  await expect(createSource(services, INPUT)).rejects.toEqual(code('feedback_source_limit_reached'))
  await createSource(services, { ...INPUT, accountId: 'acc_2' })
  expect(await listSources(services.database.reader, 'acc_1')).toHaveLength(SOURCES_MAX)
})

test('a source is deleted once, by its account or by the admin', async () => {
  const services = await createServices()
  const { source } = await createSource(services, INPUT)
  const { id } = source
  const remove = (accountId: string | null) => deleteSource(services, { id, accountId })
  await expect(remove('acc_2')).rejects.toEqual(code('feedback_source_not_found'))
  expect(await remove(null)).toMatchObject({ id })
  await expect(remove('acc_1')).rejects.toEqual(code('feedback_source_not_found'))
  await expect(getSource(services, source)).rejects.toEqual(code('feedback_source_not_found'))
})

test('a request is recorded with its time, which is stored once a minute', async () => {
  const services = await createServices()
  const { source } = await createSource(services, INPUT)
  const { headers, text } = sendgridRequest(Object.values(EVENTS.sendgrid))
  const request = {
    header: (name: string) => new Headers(headers).get(name) ?? undefined,
    bytes: Buffer.from(text),
    body: JSON.parse(text) as unknown,
  }
  const receive = async () => receiveFeedback(services, await getSource(services, source), request)
  const lastReceived = async () => (await getSource(services, source)).last_received_at
  const startedAt = services.clock.now()
  expect(await receive()).toMatchObject({ received: 3, recorded: 3, duplicates: 0 })
  expect(await lastReceived()).toBe(startedAt)
  await services.clock.advance(MINUTE - 1)
  expect(await receive()).toMatchObject({ recorded: 0, duplicates: 3 })
  expect(await lastReceived()).toBe(startedAt)
  await services.clock.advance(1)
  await receive()
  expect(await lastReceived()).toBe(startedAt + MINUTE)
})
