import { beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import {
  buildImage,
  type Image,
  jsonArguments,
  lastArguments,
  readStages,
} from '../support/image.ts'
import { readDoc } from '../support/markdown.ts'

const DOCKERFILE = readDoc('deploy/Dockerfile')
const LAST = readStages(DOCKERFILE).at(-1) as ReturnType<typeof readStages>[number]

type Locked = { readonly version: string; readonly integrity: string }
type Lock = { readonly packages: Readonly<Record<string, Locked>> }

/** Both stages install packages: three minutes on a busy machine. */
const BUILD_TIMEOUT_MS = 900_000

// No container is started: the instructions run in directories of this machine.
describe('the Dockerfile', () => {
  let image: Image
  beforeAll(async () => {
    image = await buildImage(DOCKERFILE)
  }, BUILD_TIMEOUT_MS)

  test('builds an image whose service is healthy, and ends at its stop signal', async () => {
    const port = await freePort()
    const environment = { EV_LISTEN: `0.0.0.0:${port}`, EV_INSECURE_HTTP: 'on' }
    const command = [...jsonArguments(LAST, 'ENTRYPOINT'), ...jsonArguments(LAST, 'CMD')]
    const check = () => image.start(jsonArguments(LAST, 'HEALTHCHECK'), environment).ended
    const service = image.start(command, environment)
    await service.printed('API documentation:')
    expect((await check()).code).toBe(0)
    const keys = await image.start(['ev', 'keys', 'list'], environment).ended
    expect(keys).toMatchObject({ code: 0, output: expect.stringContaining('ev_live_') })
    service.signal(lastArguments(LAST, 'STOPSIGNAL') as NodeJS.Signals)
    expect((await service.ended).code).toBe(0)
    expect((await check()).code).toBe(1)
  })

  test('contains the package evmail with the locked versions of its dependencies, and no more', () => {
    const { packages } = image.readJson('/ev/node_modules/.package-lock.json') as Lock
    const { packages: locked } = JSON.parse(readDoc('package-lock.json')) as Lock
    const own = ['evmail', 'evmail-client', 'evmail-engine'].map(name => `node_modules/${name}`)
    const others = Object.keys(packages).filter(path => !own.includes(path))
    expect(Object.keys(packages)).toEqual(expect.arrayContaining(own))
    expect(others.length).toBeGreaterThan(30)
    for (const path of others) {
      const { version, integrity } = packages[path] as Locked
      expect({ path, version, integrity }).toEqual({
        path,
        version: locked[path]?.version,
        integrity: locked[path]?.integrity,
      })
    }
    const absent = ['src', 'test', 'packages', 'node_modules/hono', 'node_modules/.bin/node']
    expect(absent.filter(path => image.has(`/ev/${path}`))).toEqual([])
  })
})
