import type { Scenario } from '../../src/simulator/scenario.ts'

export type HostPlan = Scenario['hosts'][string]

/** Plans domains with an MX of their own, `mx.` and the domain, so that each is its own operator. */
export const withOwnHosts = (
  plans: Readonly<Record<string, HostPlan>>,
): Pick<Scenario, 'domains' | 'hosts'> => ({
  domains: Object.fromEntries(
    Object.keys(plans).map(name => [name, { mx: [[10, `mx.${name}`]] as const }]),
  ),
  hosts: Object.fromEntries(Object.entries(plans).map(([name, plan]) => [`mx.${name}`, plan])),
})

/** The same with one plan for all domains. */
export const withEqualHosts = (names: readonly string[], plan: HostPlan) =>
  withOwnHosts(Object.fromEntries(names.map(name => [name, plan])))
