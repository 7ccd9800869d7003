import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Scenario } from '../../../src/simulator/scenario.ts'
import {
  type SimulatorProcess,
  startScenarioProcess,
} from '../../../src/simulator/simulator-process.ts'
import { bareApi, templatesOf } from '../../api/contract/document.ts'
import { schemaChecks } from '../../api/contract/schemas.ts'
import { emptyFolder, simulatorFlags } from '../../support/ev-process.ts'
import { codeBlocks } from '../../support/markdown.ts'
import { type ServiceProcess, startService } from '../../support/service-process.ts'

// Runs the curl commands of docs/api.md as they are printed, one after the other.

const hasCurl = spawnSync('curl', ['--version']).status === 0

let simulator: SimulatorProcess
let service: ServiceProcess
const home = emptyFolder()

beforeAll(async () => {
  simulator = await startScenarioProcess(SCENARIO)
  service = await startService(home, [
    ...simulatorFlags(simulator),
    '--webhook-allow-ranges',
    '127.0.0.0/8',
  ])
})

afterAll(async () => {
  await service.end('SIGTERM')
  await simulator.close()
})

const SCENARIO: Scenario = {
  mailboxes: ['user'],
  domains: { 'example.com': { mx: [[10, 'mx.example.com']], a: ['127.20.0.9'] } },
  hosts: { 'mx.example.com': { behavior: 'polite' } },
}

describe.skipIf(!hasCurl)('the examples of docs/api.md', () => {
  const block = blocksOf('bash').find(text => text.includes('EV_URL')) ?? ''
  const lines = block.split('\n').filter(line => /^(export (?!EV_URL)|curl|printf)/.test(line))

  test('cover each path of the OpenAPI document', () => {
    const shown = new Set(
      lines.flatMap(line => {
        const request = parseRequest(line)
        return request === null ? [] : [`${request.method} ${request.template}`]
      }),
    )
    const places = Object.entries(bareApi().document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`),
    )
    expect(places.filter(place => !shown.has(place))).toEqual(WITHOUT_EXAMPLE)
  })

  test('get responses that match the OpenAPI document', () => {
    const outputs = run(lines)
    expect(outputs).toHaveLength(lines.length)
    for (const { line, status, type, body } of outputs) {
      const request = parseRequest(line)
      if (status === null || request === null) {
        expect(body, line).not.toContain('"success":false')
        continue
      }
      // The job of the examples completes before it can be cancelled, so it is not resumed either.
      const allowed = /\/(cancel|resume)/.test(line) ? [200, 409] : [200, 201, 204]
      expect(allowed, `${line}\n${body}`).toContain(status)
      if (status === 204 || request.template === null) continue
      expect(findViolation(request, { status, type, body }), `${line}\n${body}`).toBe(null)
    }
  })
})

/**
 * A list at a URL needs a public server, PUT is PATCH with all fields, and only email providers send
 * events to a feedback source.
 */
const WITHOUT_EXAMPLE = [
  'POST /v1/verify/url',
  'PUT /v1/webhooks/{id}',
  'POST /v1/feedback/{provider}/{id}',
]

/** Returns the code blocks of docs/api.md in a language. */
const blocksOf = (language: string): string[] =>
  codeBlocks('docs/api.md').flatMap(block => (block.language === language ? [block.text] : []))

type LineOutput = { line: string; status: number | null; type: string; body: string }

/** Runs lines in one shell. The output of a line that is only a request has a status. */
function run(lines: readonly string[]): LineOutput[] {
  const script = lines.map((line, n) => {
    const isRequest = line.startsWith('curl') && !line.includes(' -o ')
    return `${isRequest ? line.replaceAll('http://127.0.0.1:8080', '$EV_URL').replace(/^curl /, `curl -w '\\n${STATUS}%{http_code} %{content_type}' `) : line}\necho; echo '${MARK}${n}'`
  })
  const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', script.join('\n')], {
    cwd: home,
    env: { PATH: process.env.PATH, EV_URL: service.url, EV_KEY: service.key },
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  return stdout
    .split(new RegExp(`\\n${MARK}\\d+\\n`))
    .slice(0, -1)
    .map((output, n) => {
      const [body = '', meta] = output.split(`\n${STATUS}`)
      const [status, type = ''] = (meta ?? '').split(/[ ;]+/)
      const line = lines[n] ?? ''
      return { line, status: status ? Number(status) : null, type, body: body.trim() }
    })
}

const MARK = '@@@ end of line '
const STATUS = '@@@ status '

type ParsedRequest = { readonly method: string; readonly template: string | null }

/** Returns the operation that a line requests. */
function parseRequest(line: string): ParsedRequest | null {
  const url = /curl .*?"?(?:\$EV_URL|http:\/\/[\w.:]+)(\/[^\s"?]*)/.exec(line)?.[1]
  if (url === undefined) return null
  const method = /-X (\w+)/.exec(line)?.[1] ?? (/ -[dF] /.test(line) ? 'POST' : 'GET')
  return { method, template: templates.find(({ fits }) => fits.test(url))?.path ?? null }
}

const { document } = bareApi()
const templates = templatesOf(document)
const checks = schemaChecks(document)

/** Returns how a response violates the document, or null if it does not or is not JSON. */
function findViolation(
  { method, template }: ParsedRequest,
  { status, type, body }: { status: number; type: string; body: string },
): string | null {
  const operation = document.paths[template ?? '']?.[method.toLowerCase()]
  const media = operation?.responses[status]?.content?.[type]
  if (media === undefined) return `${status} ${type} is not in the document`
  return type.endsWith('/json') ? checks.answer(media.schema)(JSON.parse(body)) : null
}
