import { expect, test } from 'vitest'
import * as evClient from '../../src/client/client.ts'
import { codeBlocks, readDoc, shownOutput } from '../support/markdown.ts'
import { createWiredService } from '../support/wired-service.ts'

const DOCS = readDoc('docs/client.md')
const snippets = codeBlocks('docs/client.md').flatMap(({ language, text }) =>
  language === 'js' ? [text] : [],
)

test('the examples of docs/client.md run and print the documented output', async () => {
  expect(snippets.length).toBeGreaterThan(9)
  const { key, fetch } = await createWiredService()
  const printed: string[] = []
  const around = {
    ev: { ...evClient, EvClient: clientThatAsks(fetch) },
    process: { env: { EV_KEY: key } },
    console: { log: (...args: unknown[]) => printed.push(args.map(String).join(' ')) },
    show: () => {},
  }
  const program = snippets.join('\n').replaceAll(IMPORT, 'const {$1} = ev')
  await new AsyncFunction(...Object.keys(around), program)(...Object.values(around))
  expect(printed).toEqual(shownOutput(program))
})

test('docs/client.md names every method', () => {
  const { client } = { client: new evClient.EvClient({ apiKey: 'a', baseUrl: 'https://ev.test' }) }
  const methods = Object.entries(client).flatMap(([name, value]) =>
    typeof value === 'function' ? [name] : Object.keys(value).map(inner => `${name}.${inner}`),
  )
  const rare = ['bulkStatus', 'keys.list', 'keys.get', 'keys.update', 'jobs.get', 'jobs.delete']
  const missing = methods.filter(name => {
    const [room = '', method] = name.split('.')
    const isNamed = DOCS.includes(`client.${name}`) || DOCS.includes(`client.${name}(`)
    return !isNamed && !(method !== undefined && DOCS.includes(`client.${room}\` has`))
  })
  expect(missing.filter(name => !rare.includes(name))).toEqual([])
})

const IMPORT = /import \{(.*)\} from 'evmail-client'/g

const AsyncFunction = (async () => {}).constructor as new (
  ...args: string[]
) => (...args: unknown[]) => Promise<void>

const clientThatAsks = (fetch: evClient.ClientOptions['fetch']) =>
  class extends evClient.EvClient {
    constructor(options: evClient.ClientOptions) {
      super({ ...options, ...(fetch && { fetch }) })
    }
  }
