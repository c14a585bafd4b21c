# SPDX-License-Identifier: Apache-2.0
"""Open work: places that break a newer rule and are not mended yet. The list may only shrink.

LISTED maps a path, or a class, to the rules that it breaks; a path with '/' at its end stands for all below it.
A finding that stands here is left out. An entry that breaks its rule no more is a finding itself.
"""

from pathlib import Path

from tree import Finding

RULES = ("circle", "engines", "folder-size", "class-size", "test-helper", "page", "sentence", "width", "comment", "of",
         "subject")  # nothing may be listed for the others


def sort_out(findings, listed):
    """(findings to report, findings that `listed` knows); an entry without one is reported too."""
    rules = {place: set(text.split()) & set(RULES) for place, text in listed.items()}
    folders = tuple(place for place in listed if place.endswith("/"))
    new, known, used = [], [], set()
    for finding in findings:
        places = [finding.subject or finding.path, *(folder for folder in folders if finding.path.startswith(folder))]
        place = next((place for place in places if finding.rule in rules.get(place, ())), None)
        (new if place is None else known).append(finding)
        used.add((place, finding.rule))
    for place, text in listed.items():
        new += [Finding("tools/tidy/open_work.py", _line(place), "open-work",
                        f"'{place}' breaks '{rule}' no more, or it may not be listed; remove it from the list")
                for rule in text.split() if (place, rule) not in used]
    return new, known


def _line(place):
    """Where the list names `place`."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, 1) if line.startswith(f'    "{place}": ')), 1)


LISTED = {
    "CONTRIBUTING.md": "page sentence width subject",
    "README.md": "subject",
    "apps/cli/answering.cc": "engines",
    "apps/cli/answering.h": "engines subject",
    "apps/cli/cluster_words.h": "subject",
    "apps/cli/coordinator.cc": "engines",
    "apps/cli/join.cc": "engines",
    "apps/cli/train.cc": "engines",
    "apps/cli/train_settings.cc": "engines",
    "apps/cli/train_settings.h": "engines",
    "bench/cluster.py": "of",
    "bench/links.py": "of",
    "docs/ARCHITECTURE.md": "sentence width subject",
    "src/engines/check/check_fleet.cc": "test-helper",
    "src/engines/check/check_fleet.h": "test-helper",
    "src/engines/sparse": "folder-size",
    "src/engines/sparse/fleet": "folder-size",
    "src/engines/sparse/fleet/served_fleet.h": "test-helper",
    "src/engines/sparse/random_model.h": "test-helper",
    "src/learn/data": "folder-size",
    "src/learn/data/collected_records.h": "test-helper",
    "src/learn/lsh/random_rows.h": "test-helper",
    "src/learn/sparse": "folder-size",
    "src/learn/sparse/random_problem.h": "test-helper",
    "src/learn/sparse/reference_learner.cc": "test-helper",
    "src/learn/sparse/reference_learner.h": "test-helper",
    "src/learn/text/definition_context.h": "subject",
    "src/net/link/simulated_nodes.h": "test-helper",
    "src/node": "folder-size",
    "src/node/bench_kernels.h": "comment",
    "src/node/bench_sparse_search.cc": "engines",
    "src/node/bench_sparse_step.cc": "engines",
    "src/node/bench_sparse_step.h": "engines",
    "src/node/block_evaluation.h": "engines of",
    "src/node/cluster": "folder-size",
    "src/node/cluster/cluster_status.cc": "of",
    "src/node/cluster/coordinator_node.h": "of subject",
    "src/node/cluster/enrolling.h": "of",
    "src/node/cluster/exchanging_node.h": "test-helper",
    "src/node/cluster/file_delivery.h": "subject",
    "src/node/cluster/file_exchange.h": "subject",
    "src/node/cluster/incoming_file.h": "subject",
    "src/node/cluster/link_trials.cc": "of",
    "src/node/cluster/link_trials.h": "of",
    "src/node/cluster/metrics_page.h": "subject",
    "src/node/cluster/node_log.h": "subject",
    "src/node/cluster/places.h": "of subject",
    "src/node/cluster/questions.h": "subject",
    "src/node/cluster/shared_tokens.h": "subject",
    "src/node/cluster/stored_file.h": "subject",
    "src/node/data_import.cc": "of",
    "src/node/data_import.h": "engines of",
    "src/node/disk_space.cc": "engines of",
    "src/node/disk_space.h": "engines",
    "src/node/feature_kind.h": "engines of",
    "src/node/fleet": "folder-size",
    "src/node/fleet/checkpoint_keeper.h": "engines subject",
    "src/node/fleet/checkpoint_writer.h": "engines",
    "src/node/fleet/fleet_companion.h": "of",
    "src/node/fleet/fleet_configuration.cc": "engines",
    "src/node/fleet/fleet_configuration.h": "engines",
    "src/node/fleet/fleet_data.cc": "engines",
    "src/node/fleet/fleet_data.h": "comment",
    "src/node/fleet/fleet_plan.cc": "engines of",
    "src/node/fleet/fleet_plan.h": "engines comment",
    "src/node/fleet/fleet_progress.cc": "engines",
    "src/node/fleet/fleet_progress.h": "engines of subject",
    "src/node/fleet/fleet_runner.cc": "engines",
    "src/node/fleet/lead_runner.cc": "engines of",
    "src/node/fleet/lead_runner.h": "comment of",
    "src/node/fleet/member_job.cc": "engines",
    "src/node/fleet/member_job.h": "engines of",
    "src/node/fleet/node_processes.h": "subject",
    "src/node/fleet/part_file.cc": "engines",
    "src/node/fleet/part_file.h": "engines of",
    "src/node/fleet/part_tensors.h": "engines comment subject",
    "src/node/fleet/query_desk.h": "engines of",
    "src/node/fleet/recovery_reports.h": "engines subject",
    "src/node/fleet/serving_fleet.cc": "engines",
    "src/node/fleet/serving_fleet.h": "engines subject",
    "src/node/fleet/serving_job.cc": "engines of",
    "src/node/fleet/serving_job.h": "engines of",
    "src/node/fleet/step_reports.h": "engines comment of",
    "src/node/fleet/supplied_engine.h": "comment subject",
    "src/node/line_file.h": "subject",
    "src/node/model_export.cc": "engines",
    "src/node/model_export.h": "engines",
    "src/node/prediction.cc": "engines",
    "src/node/prediction.h": "engines of subject",
    "src/node/prediction_service.cc": "of",
    "src/node/prediction_service.h": "comment",
    "src/node/queries.h": "engines",
    "src/node/run_directory.h": "engines",
    "src/node/run_refusals.cc": "engines",
    "src/node/run_refusals.h": "engines subject",
    "src/node/sim_machine.h": "test-helper",
    "src/node/simulate.cc": "of",
    "src/node/step_watch.h": "engines",
    "src/node/test_cache.cc": "test-helper",
    "src/node/test_cache.h": "engines test-helper",
    "src/node/train_run.cc": "engines of",
    "src/node/train_run.h": "engines of subject",
    "src/node/train_summary.h": "subject",
    "src/node/training_data.cc": "of",
    "src/node/training_data.h": "engines",
    "src/node/training_samples.h": "engines of",
    "src/node/weighting_choice.h": "engines",
    "src/node/word_data.cc": "engines",
    "src/node/word_data.h": "engines",
    "src/node/word_training.h": "engines",
    "cluster::Coordinator": "class-size",
    "cluster::Member": "class-size",
    "engine::FleetEngine": "class-size",
    "net::Links": "class-size",
    "node::CoordinatorNode": "class-size",
    "sparse::Learner": "class-size",
}
