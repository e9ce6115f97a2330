const { STRONGROOM_TEST_GALERA: galera, STRONGROOM_TEST_MYSQL: mysql } = process.env

/**
 * The database of this run of tests, started by global.ts: one MariaDB; with STRONGROOM_TEST_GALERA a Galera cluster;
 * with STRONGROOM_TEST_MYSQL one MySQL (`alone`) or Group Replication (`multi`: every member takes writes, `single`:
 * one primary).
 */
export const engine = galera ? 'galera' : (mysql ?? 'mariadb')

export const onMySql = mysql !== undefined

export const inGroup = engine === 'multi' || engine === 'single'

/** The table that an account needs to read besides its schema, in Group Replication. */
export const membersTable = 'performance_schema.replication_group_members'

/** Whether there are three nodes, to which statements go one by one. */
export const clustered = engine === 'galera' || inGroup

/** After this statement a session's reads from tables include the commits of all nodes. */
export const causal =
  engine === 'galera'
    ? 'SET SESSION wsrep_sync_wait = 1'
    : inGroup
      ? "SET SESSION group_replication_consistency = 'BEFORE'"
      : 'DO 0'
