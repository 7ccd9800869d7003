import type { Scenario } from '../../src/simulator/scenario.ts'

export type HostPlan = Scenario['hosts'][string]

/** Gives each domain one MX host, named `mx.` plus the domain, so that each domain is an operator. */
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
