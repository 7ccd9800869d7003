import { describe, expect, test } from 'vitest'
import { STOP_MS_MAX as SERVE_STOP_MS_MAX } from '../../src/cli/serve/run-service.ts'
import { STOP_MS_MAX as WORKER_STOP_MS_MAX } from '../../src/cli/serve/run-worker.ts'
import { emptyFolder, startEv } from '../support/cli.ts'
import { environmentOf, jsonArguments, lastArguments, readStages } from '../support/image.ts'
import { readYaml, unknownSettings } from '../support/manifest.ts'
import { readDoc } from '../support/markdown.ts'

type Labels = Readonly<Record<string, string>>
type Probe = { readonly httpGet: { readonly path: string; readonly port: string } }
type Container = {
  readonly args: readonly string[]
  readonly image: string
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly startupProbe: Probe
  readonly readinessProbe: Probe
  readonly livenessProbe: Probe
  readonly lifecycle?: { readonly preStop: { readonly exec: { readonly command: string[] } } }
  readonly envFrom: readonly Readonly<Record<string, { readonly name: string }>>[]
  readonly [field: string]: unknown
}
type Pod = {
  readonly containers: readonly [Container]
  readonly terminationGracePeriodSeconds: number
  readonly [field: string]: unknown
}
type Manifest = {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly data: Readonly<Record<string, string>>
  readonly spec: {
    readonly selector: Labels & { readonly matchLabels: Labels }
    readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: Pod }
    readonly ports: readonly { readonly targetPort: string }[]
    readonly [field: string]: unknown
  }
}

const manifests = readYaml<Manifest>('deploy/kubernetes.yaml')
const image = readStages(readDoc('deploy/Dockerfile')).at(-1) as ReturnType<typeof readStages>[0]

function find(kind: string, name: string): Manifest {
  const found = manifests.find(one => one.kind === kind && one.metadata.name === name)
  if (found === undefined) throw new Error(`no ${kind} ${name}`)
  return found
}

const { data: settings } = find('ConfigMap', 'ev')

describe.each([
  { command: 'serve', name: 'ev-server', stopMsMax: SERVE_STOP_MS_MAX },
  { command: 'worker', name: 'ev-worker', stopMsMax: WORKER_STOP_MS_MAX },
])('the Deployment $name', ({ command, name, stopMsMax }) => {
  const { spec } = find('Deployment', name)
  const pod = spec.template.spec
  const [container] = pod.containers

  test('runs a command of ev, with the settings and the secret', () => {
    expect(jsonArguments(image, 'ENTRYPOINT')).toEqual(['ev'])
    expect(container.args).toEqual([command])
    expect(container.envFrom).toEqual([
      { configMapRef: { name: 'ev' } },
      { secretRef: { name: 'ev' } },
    ])
    expect(container.image).toMatch(/:\d+\.\d+\.\d+$/)
  })

  test('selects its own pods', () => {
    expect(spec.template.metadata.labels).toEqual(spec.selector.matchLabels)
  })

  test('has time for a graceful shutdown', () => {
    const delayS = Number(container.lifecycle?.preStop.exec.command[1] ?? 0)
    const graceMs = (pod.terminationGracePeriodSeconds - delayS) * 1_000
    expect(graceMs).toBeGreaterThan(stopMsMax)
  })

  test('runs as the user of the image, without privileges, on a read-only file system', () => {
    const [uid, gid] = lastArguments(image, 'USER').split(':').map(Number)
    expect(pod.securityContext).toEqual({
      runAsNonRoot: true,
      runAsUser: uid,
      runAsGroup: gid,
      fsGroup: gid,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    expect(pod).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false })
  })

  test('mounts a writable data directory', () => {
    const { EV_DATA_DIR } = environmentOf(image)
    expect(container.volumeMounts).toEqual([{ name: 'data', mountPath: EV_DATA_DIR }])
    expect(pod.volumes).toEqual([{ name: 'data', emptyDir: { sizeLimit: expect.any(String) } }])
  })

  test('limits memory', () => {
    expect(container).toHaveProperty('resources.limits.memory', '512Mi')
  })

  test('has ports on which the process listens', () => {
    const ports = Object.fromEntries(container.ports.map(port => [port.name, port.containerPort]))
    expect(settings.EV_METRICS_LISTEN).toBe(`0.0.0.0:${ports.monitoring}`)
    const { EV_LISTEN } = environmentOf(image)
    expect(`0.0.0.0:${ports.http}` === EV_LISTEN).toBe(command === 'serve')
  })

  test('has probes at the monitoring port', () => {
    const { startupProbe, livenessProbe, readinessProbe } = container
    const targets = [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet)
    expect(targets).toEqual(
      ['/livez', '/livez', '/readyz'].map(path => ({ path, port: 'monitoring' })),
    )
  })
})

describe('the manifests', () => {
  test('have no namespace and no Secret', () => {
    expect(manifests.filter(({ metadata }) => 'namespace' in metadata)).toEqual([])
    expect(manifests.filter(({ kind }) => kind === 'Secret')).toEqual([])
  })

  test('send requests to the servers only, and keep one of them', () => {
    const servers = find('Deployment', 'ev-server').spec
    const service = find('Service', 'ev').spec
    expect(service.selector).toEqual(servers.selector.matchLabels)
    expect(service.ports.map(port => port.targetPort)).toEqual(['http'])
    const budget = find('PodDisruptionBudget', 'ev-server').spec
    expect(budget.selector.matchLabels).toEqual(servers.selector.matchLabels)
    expect(budget.minAvailable).toBeLessThan(servers.replicas as number)
  })

  test('use existing settings, in the comments too', () => {
    const text = readDoc('deploy/kubernetes.yaml')
    const commented = [...text.matchAll(/--from-literal=(\w+)=/g)].map(match => match[1] as string)
    expect(commented).toEqual(['EV_DATABASE', 'EV_SECRET', 'EV_METRICS_TOKEN'])
    expect(unknownSettings([...Object.keys(settings), ...commented])).toEqual([])
  })
})

test('a service with the settings of the manifests answers the probes, and metrics with the token', async () => {
  const environment = {
    ...settings,
    EV_METRICS_TOKEN: 'token-of-the-test',
    EV_LOG_FORMAT: 'json',
    EV_LISTEN: '0.0.0.0:0',
    EV_METRICS_LISTEN: '0.0.0.0:0',
  }
  const running = startEv(['serve', '--data-dir', 'data'], { home: emptyFolder(), environment })
  await running.printed('API documentation:', 'stderr')
  const port = /health and metrics on http:\/\/0\.0\.0\.0:(\d+)/.exec(running.stderr)?.[1]
  const get = async (path: string, headers = {}) =>
    (await fetch(`http://127.0.0.1:${port}${path}`, { headers })).status
  const statuses = {
    livez: await get('/livez'),
    readyz: await get('/readyz'),
    metrics: await get('/metrics', { Authorization: 'Bearer token-of-the-test' }),
    wrongToken: await get('/metrics', { Authorization: 'Bearer another' }),
  }
  running.signal('SIGTERM')
  expect((await running.ended).code).toBe(0)
  expect(statuses).toEqual({ livez: 200, readyz: 200, metrics: 200, wrongToken: 401 })
})
