import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { describe, expect, test } from 'vitest'
import { STOP_MS_MAX } from '../../src/cli/serve/run-service.ts'
import { jsonArguments, readStages } from '../support/image.ts'
import { durationMs, readVariables, readYaml, unknownSettings } from '../support/manifest.ts'
import { readDoc } from '../support/markdown.ts'

type ComposeService = {
  readonly image: string
  readonly command: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly [option: string]: unknown
}
type Compose = {
  readonly services: Readonly<Record<'database' | 'server' | 'worker', ComposeService>>
  readonly volumes: Readonly<Record<string, unknown>>
}

const [compose] = readYaml<Compose>('deploy/compose.yml') as [Compose]
const { database, server, worker } = compose.services
const example = readVariables(readDoc('deploy/scaling.env.example'))

describe.each([
  ['server', server],
  ['worker', worker],
])('the service %s of compose.yml', (_, service) => {
  test('runs without privileges on a read-only file system', () => {
    expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
    expect(service.security_opt).toEqual(['no-new-privileges:true'])
    expect(service).not.toHaveProperty('privileged')
  })

  test('has time for a graceful shutdown', () => {
    expect(durationMs(service.stop_grace_period as string)).toBeGreaterThan(STOP_MS_MAX)
  })

  test('waits for a healthy database', () => {
    expect(service.depends_on).toEqual({ database: { condition: 'service_healthy' } })
  })

  test('uses existing settings and no secret', () => {
    const names = Object.keys(service.environment ?? {})
    expect(unknownSettings(names)).toEqual([])
    expect(names.filter(name => /SECRET|DATABASE|TOKEN/.test(name))).toEqual([])
  })
})

describe('compose.yml', () => {
  test('is valid by the schema of the Compose specification', () => {
    const schema = JSON.parse(readDoc('fixtures/compose/compose-spec.json'))
    // ajv knows this draft by its older name.
    const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, strict: false })
    addFormats.default(ajv)
    const validate = ajv.compile({ ...schema, $schema: 'http://json-schema.org/draft-07/schema#' })
    expect(validate(compose), ajv.errorsText(validate.errors)).toBe(true)
    const broken = { ...compose, services: { server: { image: 'ev', read_only: 'never' } } }
    expect(validate({ ...broken, service: {} })).toBe(false)
  })

  test('publishes plain HTTP on loopback only, and no port of the database', () => {
    expect(server.ports).toEqual(['127.0.0.1:8080:8080'])
    expect(database).not.toHaveProperty('ports')
    expect(worker).not.toHaveProperty('ports')
  })

  test('pins the version of PostgreSQL', () => {
    expect(database.image).toMatch(/^postgres:\d+\.\d+$/)
    expect(database).toHaveProperty('healthcheck.test')
  })

  test('checks the health of a worker at its metrics port', () => {
    const last = readStages(readDoc('deploy/Dockerfile')).at(-1)
    if (last === undefined) throw new Error('the Dockerfile has no stage')
    const check = ['CMD', ...jsonArguments(last, 'HEALTHCHECK')]
    const address = worker.environment?.EV_METRICS_LISTEN
    expect(worker.healthcheck).toEqual({ test: [...check, address] })
  })

  test('declares the volumes that it mounts', () => {
    const mounted = [database, server].flatMap(({ volumes }) => volumes as string[])
    const names = mounted.map(volume => volume.split(':')[0])
    expect(Object.keys(compose.volumes)).toEqual(names)
  })

  test('has an example of its variables, with existing settings and one password', () => {
    const own = Object.keys(example).filter(name => name.startsWith('EV_'))
    expect(own).toContain('EV_SECRET')
    expect(unknownSettings(own)).toEqual([])
    const { POSTGRES_USER: user, POSTGRES_PASSWORD: password, POSTGRES_DB: name } = example
    expect(example.EV_DATABASE).toBe(`postgres://${user}:${password}@database:5432/${name}`)
    expect(readDoc('.gitignore').split('\n')).toContain('deploy/scaling.env')
  })
})
