//! Tests of the settings: values, defaults, and the page that lists them.

use super::*;

fn parse(variables: &[(&str, &str)]) -> (Config, Vec<String>) {
    parse_for(variables, false)
}

fn parse_for(variables: &[(&str, &str)], privileged: bool) -> (Config, Vec<String>) {
    let values = variables.iter().map(|pair| given(*pair, ValueSource::Environment));
    let applied = apply_values(values.collect(), privileged);
    let lines = applied.warnings.iter().map(Line::to_string).collect();
    (applied.config, lines)
}

fn given((name, value): (&str, &str), source: ValueSource) -> GivenValue {
    GivenValue { name: name.into(), value: value.into(), source }
}

/// Values of a file, one a line, and then those of the environment.
fn layered(file: &[(&str, &str)], environment: &[(&str, &str)]) -> Applied {
    let in_line = |(at, pair): (usize, &(&str, &str))| {
        given(*pair, ValueSource::File("/etc/fompi.conf".into(), at + 1))
    };
    let values = file.iter().enumerate().map(in_line);
    let present = environment.iter().map(|pair| given(*pair, ValueSource::Environment));
    apply_values(values.chain(present).collect(), false)
}

/// A row of a page without the marks of Markdown, and without remarks that are only links.
fn plain(row: &str) -> String {
    let mut text = row.replace(['`'], "");
    while let Some((start, end)) = text
        .find("](")
        .and_then(|middle| Some((text[..middle].rfind('[')?, middle + text[middle..].find(')')?)))
    {
        let name = text[start + 1..end].split("](").next().unwrap_or_default().to_owned();
        let is_remark = text[..start].ends_with(" (") && text[end + 1..].starts_with(')');
        match is_remark {
            true => text.replace_range(start - 2..end + 2, ""),
            false => text.replace_range(start..end + 1, &name),
        }
    }
    text
}

#[test]
fn the_page_has_the_rows_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/environment.md");
    let page = std::fs::read_to_string(path).unwrap();
    for variable in &VARIABLES {
        let (name, mut default) = (variable.name, variable.default.text());
        let start = format!("| `{name}` |");
        let mut rows = page.lines().skip_while(|line| !line.starts_with(&start)).map(plain);
        let mut first = format!("| {name} |");
        for (value, meaning) in variable.meanings {
            let common = if variable.is_common { " (*)" } else { "" };
            let expected = format!("{first} {value} | {default} | {meaning}{common} |");
            assert_eq!(
                rows.next().map(|row| row.replace("|  |", "| |")),
                Some(expected.replace("|  |", "| |"))
            );
            (first, default) = ("| |".into(), "");
        }
        assert!(!rows.next().is_some_and(|row| row.starts_with("| |")), "{name}");
    }
    assert_eq!(page.matches("\n| `FOMPI_").count(), VARIABLES.len());
}

#[test]
fn a_default_that_is_a_value_changes_nothing() {
    for variable in &VARIABLES {
        if let crate::variables::DefaultValue::Is(value) = variable.default {
            let expected = (Config::default(), Vec::new());
            assert_eq!(parse(&[(variable.name, value)]), expected, "{}", variable.name);
        }
    }
}

#[test]
fn the_environment_wins_over_files_and_a_later_line_over_an_earlier_one() {
    let file = [("FOMPI_NET", "off"), ("FOMPI_STRICT", "1"), ("FOMPI_NET", "tcp")];
    let applied = layered(&file, &[("FOMPI_STRICT", "0"), ("FOMPI_LIB", "/a")]);
    assert!(applied.warnings.is_empty());
    assert_eq!((applied.config.net.choice, applied.config.strict), (Net::Tcp, false));
    let found: Vec<_> = applied
        .in_force
        .iter()
        .map(|one| (&*one.name, &*one.value, one.source.to_string()))
        .collect();
    let expected = [
        ("FOMPI_NET", "tcp", "/etc/fompi.conf:3".into()),
        ("FOMPI_STRICT", "0", "environment".into()),
        ("FOMPI_LIB", "/a", "environment".into()),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_wrong_value_leaves_the_one_before_in_force() {
    let applied = layered(&[("FOMPI_NET", "tcp"), ("FOMPI_NET", "udp")], &[("FOMPI_NET", "")]);
    assert_eq!(applied.config.net.choice, Net::Tcp);
    assert_eq!(applied.in_force.len(), 1);
    assert_eq!(applied.warnings.len(), 2);
    let lines = applied.warnings.iter().map(Line::to_string).collect::<Vec<_>>();
    let text = "FOMPI_NET=udp is ignored: it can be auto, verbs, tcp or off [FOMPI-W003]";
    assert_eq!(lines[0], format!("/etc/fompi.conf:2: {text}"));
    assert!(lines[1].starts_with("FOMPI_NET= is ignored"), "{}", lines[1]);
}

#[test]
fn the_file_of_the_installation_makes_settings() {
    let prefix = std::env::temp_dir().join(format!("fompi-prefix-{}", std::process::id()));
    std::fs::create_dir_all(prefix.join("etc")).unwrap();
    let path = prefix.join("etc/fompi.conf");
    std::fs::write(&path, "FOMPI_NET_TIMEOUT=77\nFOMPI_NET_TIMEOUT 78\n").unwrap();
    let applied = settings_with(Some(&prefix.join("lib/libfompi.so")));
    std::fs::remove_dir_all(&prefix).unwrap();
    assert_eq!(applied.config.net_timeout, 77);
    let expected = given(("FOMPI_NET_TIMEOUT", "77"), ValueSource::File(path.clone(), 1));
    assert!(applied.in_force.contains(&expected));
    let start = format!("{}:2: ", path.display());
    assert!(applied.warnings.iter().any(|warning| warning.to_string().starts_with(&start)));
}

#[test]
fn a_variable_of_fompirun_in_a_file_gives_a_warning() {
    let applied = layered(&[("FOMPI_LIB", "/a"), ("FOMPI_CACHE", "/b")], &[("FOMPI_SEEDS", "1")]);
    assert_eq!((applied.in_force.len(), applied.warnings.len()), (0, 1));
    assert!(is_variable("FOMPI_LIB") && is_variable("FOMPI_CACHE") && !is_variable("FOMPI_X"));
}

#[test]
fn what_is_set_is_read() {
    let (config, warnings) = parse(&[("FOMPI_VERBOSE", "1"), ("FOMPI_FALLBACK", "error")]);
    assert!(config.verbose && !config.disable && config.fallback == Fallback::Error);
    assert!(warnings.is_empty());
}

#[test]
fn two_levels_of_talking_are_read() {
    let levels = [("0", (false, false)), ("1", (true, false)), ("2", (true, true))];
    for (value, expected) in levels {
        let (config, warnings) = parse(&[("FOMPI_VERBOSE", value)]);
        assert_eq!((config.verbose, config.reports_waits), expected);
        assert!(warnings.is_empty());
    }
    assert_eq!(parse(&[("FOMPI_VERBOSE", "3")]).1.len(), 1);
}

#[test]
fn each_value_of_a_choice_makes_its_setting() {
    let made = |name, value| {
        let (config, warnings) = parse(&[(name, value)]);
        assert!(warnings.is_empty(), "{name}={value}: {warnings:?}");
        config
    };
    let fallbacks =
        [("warn", Fallback::Warn), ("quiet", Fallback::Quiet), ("error", Fallback::Error)];
    for (value, expected) in fallbacks {
        assert_eq!(made("FOMPI_FALLBACK", value).fallback, expected);
    }
    for (value, expected) in
        [("auto", Adopt::Auto), ("never", Adopt::Never), ("always", Adopt::Always)]
    {
        assert_eq!(made("FOMPI_ADOPT", value).adopt, expected);
    }
    for (value, expected) in [("1", true), ("Yes", true), ("0", false), ("off", false)] {
        assert_eq!(made("FOMPI_STRICT", value).strict, expected);
        assert_eq!(made("FOMPI_DISABLE", value).disable, expected);
    }
    for (value, expected) in [("strict", true), ("mpi", false)] {
        assert_eq!(made("FOMPI_ORDER", value).strict_order, expected);
    }
}

#[test]
fn a_number_is_in_its_range_or_is_ignored() {
    let (config, warnings) = parse(&[
        ("FOMPI_NET_TIMEOUT", "1"),
        ("FOMPI_RANKS_PER_NODE", "4294967295"),
        ("FOMPI_NET_SPIN", "0"),
    ]);
    let read = (config.net_timeout, config.ranks_per_node, config.net_spin);
    assert_eq!((read, warnings.len()), ((1, Some(u32::MAX), Some(0)), 0));
    let names = ["FOMPI_NET_TIMEOUT", "FOMPI_RANKS_PER_NODE"];
    for (name, value) in names.into_iter().flat_map(|name| ["0", "-1", "x"].map(|v| (name, v))) {
        let (config, warnings) = parse(&[(name, value)]);
        assert_eq!((config, warnings.len()), (Config::default(), 1), "{name}={value}");
    }
    assert_eq!(parse(&[("FOMPI_NET_SPIN", "-1")]).1.len(), 1);
}

#[test]
fn what_is_said_of_rdma_devices_is_read() {
    let (config, warnings) = parse(&[
        ("FOMPI_VERBS_DEVICE", "mlx5_0:2"),
        ("FOMPI_VERBS_GID", "3"),
        ("FOMPI_VERBS_MTU", "1024"),
        ("FOMPI_VERBS_LIBRARY", "/opt/libibverbs.so"),
        ("FOMPI_VERBS", "off"),
    ]);
    assert!(warnings.is_empty());
    let expected = Verbs {
        wanted: false,
        library: String::from("/opt/libibverbs.so"),
        device: Some(String::from("mlx5_0")),
        port: Some(2),
        gid: Some(3),
        mtu: Some(1024),
    };
    assert_eq!(config.net.verbs, expected);
}

#[test]
fn what_is_said_of_networks_is_read() {
    let net = VARIABLES.iter().find(|variable| variable.name == "FOMPI_NET").unwrap();
    let told: Vec<_> = net.meanings.iter().map(|(value, _)| *value).collect();
    assert_eq!(told, Net::ALL.map(Net::name));
    let (last, others) = told.split_last().unwrap();
    assert_eq!(net.values, format!("{} or {last}", others.join(", ")));
    for choice in Net::ALL {
        let value = choice.name();
        let (config, warnings) = parse(&[("FOMPI_NET", value), ("FOMPI_NET_PORTS", "7-70")]);
        assert!(warnings.is_empty());
        assert_eq!((config.net.choice, config.net.ports), (choice, Ports::parse("7-70")));
    }
}

#[test]
fn an_rdma_device_is_tried_unless_it_is_switched_off() {
    let off = ("FOMPI_VERBS", "off");
    assert!(!parse(&[off]).0.net.tries_verbs());
    assert!(!parse(&[off, ("FOMPI_NET", "auto")]).0.net.tries_verbs());
    assert!(parse(&[off, ("FOMPI_NET", "verbs")]).0.net.tries_verbs());
}

#[test]
fn nonsense_about_rdma_devices_gives_a_warning_each() {
    let wrong = [
        ("FOMPI_VERBS_DEVICE", "mlx5_0:0"),
        ("FOMPI_VERBS_DEVICE", ":1"),
        ("FOMPI_VERBS_GID", "256"),
        ("FOMPI_VERBS_MTU", "1500"),
        ("FOMPI_NET_INTERFACE", ""),
        ("FOMPI_NET", "udp"),
        ("FOMPI_NET_PORTS", "9-8"),
        ("FOMPI_NET_PORTS", "0-8"),
        ("FOMPI_NET_PORTS", "8000"),
        ("FOMPI_VERBS_PORT", "1"),
        ("FOMPI_VERBS", "perhaps"),
    ];
    for one in wrong {
        let (config, warnings) = parse(&[one]);
        assert_eq!((config.net, warnings.len()), (NetSettings::default(), 1), "{one:?}");
    }
}

#[test]
fn a_privileged_program_loads_no_library_of_the_user_that_starts_it() {
    let variables = [("FOMPI_VERBS_LIBRARY", "/tmp/mine.so"), ("FOMPI_VERBOSE", "1")];
    let (config, warnings) = parse_for(&variables, true);
    assert_eq!((config.net, config.verbose), (NetSettings::default(), true));
    assert_eq!(warnings.len(), 1);
    assert_eq!(parse(&variables).0.net.verbs.library, "/tmp/mine.so");
}

#[test]
fn nonsense_gives_a_warning_each_and_changes_nothing() {
    let (config, warnings) =
        parse(&[("FOMPI_VERBOSE", "loud"), ("FOMPI_VERBSE", "1"), ("HOME", "/")]);
    assert_eq!(config, parse(&[]).0);
    assert_eq!(warnings.len(), 2);
    let texts = [
        "FOMPI_VERBOSE=loud is ignored: it can be 0, 1 or 2 [FOMPI-W003]",
        "unknown variable FOMPI_VERBSE: did you mean FOMPI_VERBOSE? [FOMPI-W001]",
    ];
    assert_eq!(warnings, texts);
    let (_, warnings) = parse(&[("FOMPI_LIBRARY", "libfompi.so"), ("FOMPI_XYZ", "1")]);
    assert!(warnings[0].contains("did you mean FOMPI_LIB?"), "{}", warnings[0]);
    assert!(warnings[1].ends_with(", FOMPI_ADOPT, FOMPI_LIB [FOMPI-W002]"), "{}", warnings[1]);
}
