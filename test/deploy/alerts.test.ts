import { parser } from '@prometheus-io/lezer-promql'
import { describe, expect, test } from 'vitest'
import { readYaml } from '../support/manifest.ts'
import { anchors } from '../support/markdown.ts'
import { createTestService } from '../support/service.ts'
import { METRICS } from '../support/telemetry.ts'

type Rule = {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: {
    readonly summary: string
    readonly action: string
    readonly runbook: string
  }
}
type RuleFile = { readonly groups: readonly { readonly rules: readonly Rule[] }[] }

const [file] = readYaml<RuleFile>('deploy/alerts.yaml') as [RuleFile]
const rules = file.groups.flatMap(group => group.rules)

/** Returns the nodes of an expression with a name of the PromQL grammar, as text. */
function nodesOf(expression: string, name: string): string[] {
  const found: string[] = []
  parser.parse(expression).iterate({
    enter: node => {
      if (node.name === name) found.push(expression.slice(node.from, node.to))
    },
  })
  return found
}

/** Returns the types of the metrics of a scrape, by name. */
async function scrape(): Promise<Map<string, string>> {
  const { request } = await createTestService()
  const text = await (await request('/metrics', { ip: '127.0.0.1', key: null })).text()
  const declared = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)]
  return new Map(declared.map(([, name = '', type = '']) => [name, type]))
}

/** Prometheus adds `up`; the client library reads the others from /proc, which only Linux has. */
const ADDED = process.platform === 'linux' ? ['up'] : ['up', 'process_open_fds', 'process_max_fds']

describe('the alert rules', () => {
  test('have unique names', () => {
    const names = rules.map(rule => rule.alert)
    expect(names.length).toBeGreaterThan(10)
    expect(new Set(names).size).toBe(names.length)
  })

  test.each(rules)('$alert is valid PromQL', ({ expr }) => {
    expect(nodesOf(expr, '⚠')).toEqual([])
  })

  test('query only metrics that ev exports', async () => {
    const metrics = await scrape()
    const queried = rules.flatMap(({ expr }) =>
      nodesOf(expr, 'VectorSelector').map(selector => selector.replace(/[{[].*/s, '').trim()),
    )
    expect(queried.length).toBeGreaterThanOrEqual(rules.length)
    expect(queried.filter(name => !metrics.has(name) && !ADDED.includes(name))).toEqual([])
  })

  test.each(rules)('$alert filters by labels that its metric has', ({ expr }) => {
    const queried = METRICS.filter(({ name }) => expr.includes(name))
    const has = ['job', 'instance', ...queried.flatMap(({ labelNames = [] }) => labelNames)]
    const labels = nodesOf(expr, 'LabelName')
    expect(labels.filter(label => !has.includes(label))).toEqual([])
  })

  test.each(rules)('$alert says what to do and links to a section', ({ labels, annotations }) => {
    expect(labels.severity).toMatch(/^(critical|warning)$/)
    expect(annotations.summary).toMatch(/\.$/)
    expect(annotations.action).toMatch(/\.$/)
    const [page = '', anchor = ''] = annotations.runbook.split('#')
    expect([...anchors(page)]).toContain(anchor)
  })

  test('compute rates only of metrics that increase', async () => {
    const metrics = await scrape()
    // ev_verdicts is a gauge that only grows: Prometheus handles its restart like that of a counter.
    const counted = rules.flatMap(({ expr }) =>
      nodesOf(expr, 'FunctionCall')
        .map(call => /^(?:rate|increase)\((\w+)/.exec(call)?.[1])
        .filter(name => name !== undefined && name !== 'ev_verdicts'),
    )
    expect(counted.length).toBeGreaterThan(0)
    expect(counted.filter(name => metrics.get(name as string) !== 'counter')).toEqual([])
  })
})
