import { expect, test } from 'vitest'
import { createTestService } from '../support/service.ts'

type Named = Record<string, unknown>
type Document = { paths: Named; components: { schemas: Named } }

test('docs/openapi.json matches the document of the API', async () => {
  const { request } = await createTestService()
  const document = (await (await request('/openapi.json', { key: null })).json()) as Document
  await expect(
    snapshotOf(document),
    'The API has changed: run `npm run openapi` and commit docs/openapi.json',
  ).toMatchFileSnapshot('../../docs/openapi.json')
})

/** Paths and schemas are sorted, so that moved code changes nothing. */
function snapshotOf({ paths, components, ...rest }: Document): string {
  const schemas = sorted(components.schemas)
  const document = { ...rest, components: { ...components, schemas }, paths: sorted(paths) }
  return `${JSON.stringify(document, null, 2)}\n`
}

const sorted = (named: Named): Named =>
  Object.fromEntries(Object.entries(named).sort(([a], [b]) => (a < b ? -1 : 1)))
